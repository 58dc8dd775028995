"""Words that hold a sentence together and say nothing of its subject."""

from chatbot.stems import stem

# Articles, pronouns, auxiliaries, conjunctions, prepositions, degrees, and what questions are
# asked and requests made with.
_ENGLISH = """
a an the this that these those some any no every each either neither both all such
i me my mine myself we us our ours you your yours yourself he him his she her hers it its
they them their theirs one ones someone somebody anyone anybody everyone everybody nobody
something anything everything nothing what which who whom whose when where why how whether if
am is are was were be been being do does did doing done have has had having
can could may might must shall should will would cannot
don't doesn't didn't isn't aren't wasn't weren't can't couldn't won't wouldn't shouldn't
haven't hasn't i'm i've you're what's
and or but nor so because than then as while though although unless until
of to in on at by for from with without about into onto over under between among through
during before after since within per via up down out off
not also too very much many more most less least few little lot ever never always just only
often soon even still already again here there now well quite rather really else instead yet
get got go going make let please want need like
"""
# Of those, what the segmenter's dictionary has as verbs, nouns, numbers or phrases.
_CHINESE = """
能 会 要 想 应该 需要 可以 可能 能够 必须 得 有 没 没有 有没有 是 是不是 是否 能否 可否
能不能 可不可以 会不会 要不要 做 给 让 请 去 来 说 用 知道 把 被 不 不能 都 还 就 也 再 太 很 最
此 每 今 您 虽 仍 较 往 啊
多少 多久 多长 多大 多高 多深 多远 多重 几 几点 几个 几天 几次 哪年 怎样才能 怎么办 怎么回事
时候 一共 总共 一般 一个 一下 对 从 到 上 下 里 中 后 前 时 多 大 个 出 这 那 什么样
"""

FUNCTION_WORDS = frozenset(stem(word.replace("'", "")) for word in _ENGLISH.split())
FUNCTION_WORDS |= frozenset(_CHINESE.split())
