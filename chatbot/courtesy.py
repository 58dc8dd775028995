"""What a message says beside its point: greetings, thanks, "could you tell me"."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

LONGEST = 1000  # characters: a longer message is read as it is

_ENDS = r",.!?;:~…，。！？；：、\n"

# Groups are atomic and repetitions possessive: no text makes them try again and again.
_GREETING = (
    r"(?:hello|hi|hiya|hey|howdy|greetings|good (?:morning|afternoon|evening|day|night))"
    r"(?: (?:there|again|everyone|all|(?:my )?friend|bot|chatbot|assistant))*+"
)
_THANKS = (
    r"(?:many |great |perfect |ok(?:ay)? )?(?:thanks|thank you|thx|cheers)"
    rf"(?: (?:so|very) much| a lot| again| in advance)*+(?: for [^{_ENDS}]{{1,40}})?"
)
_SORRY = (
    r"(?:i'?m |i am )?sorry(?: (?:to|for) (?:bother|disturb|interrupt)\w*(?: you)?(?: again)?)?"
    r"|excuse me|pardon(?: me)?|please"
)
_HEARD = (
    r"okay|ok|alright|all right|great|perfect|cool|fine|wonderful|sure|yes|no|well|so|btw"
    r"|by the way|i see|got it|understood|never mind|no problem|you're welcome"
    r"|(?:that's|that is) (?:all|great|fine|clear|helpful)"
)
_FAREWELL = (
    r"(?:good ?)?bye(?:[ -]?bye)?(?: for now)?|see you(?: (?:later|soon|tomorrow|then|around))?"
    r"|take care|sleep well|nice to meet you|have a (?:nice|good|great|lovely) \w+"
)
_ENGLISH = rf"(?>(?:{_GREETING}|{_THANKS}|{_SORRY}|{_HEARD}|{_FAREWELL})\b)"

_HAIL = "你好(?!像)[呀啊]?|您好|大家好|哈[喽啰罗]|嗨|嘿|[早晚]上好|[上中下]午好|早安|晚安"
_OBLIGED = (
    "(?:太|非常|十分|多|真是?|好的?)*+(?:感谢|谢谢|多谢|谢)(?:你|您|啦|了|哈|的?帮助|帮忙)*+"
)
_EXCUSE = "不好意思|抱歉|对不起|打[扰搅](?:一下|您|你|了)*+|劳驾|麻烦(?:你|您|了)*+"
_NOTED = (
    "早|喂|在吗|在不在|有人吗|[好行](?:的|吧|啦|了)?|[嗯哦噢]++|收到|没事了?|没问题|不用了"
    "|辛苦(?:啦|了)?|(?:明白|知道|了解|清楚)(?:啦|了)|原来如此|对了|顺便问一下|帮了大忙"
)
_PARTING = r"再见|拜拜|回[头见]见?|[明下]\w{0,2}见|好好休息|做个好梦|很高兴认识你"
_CHINESE = f"(?>{_HAIL}|{_OBLIGED}|{_EXCUSE}|{_NOTED}|{_PARTING})"

# A clause that is nothing else.
_CLAUSE = (
    rf"(?P<before>^|[{_ENDS}])\s*(?:{_ENGLISH}(?: (?:and )?{_ENGLISH})*+|{_CHINESE}++)\s*"
    rf"(?=$|[{_ENDS}])"
)
# The same before a question that goes on without a comma.
_OPENING = (
    rf"^(?:{_GREETING}|thanks|thank you|ok|okay) (?=(?:what|who|whom|whose|when|where|which|why"
    r"|how|can|could|do|does|did|is|are|was|were|will|would|should|may|i|i'd|please|tell)\b)"
    rf"|^(?>你好(?!像)|您好|{_EXCUSE})++(?=\w)"
)
_FRAME_ENGLISH = (
    r"(?:(?:can|could|would|will|may) you |please |kindly )*+"
    r"(?:(?:(?:tell|show|remind|give|teach) (?:me|us)|explain(?: to (?:me|us))?"
    r"|help (?:me|us)(?: out)?|look up|find out|let (?:me|us) know)(?: about| with| on)?)"
    r"|(?:do|did) you (?:happen to )?know(?: about)?|have you (?:any|an) idea"
    r"|(?:i|we)(?:'d| would)?(?: just)? (?:want|like|love|need) to "
    r"(?:know|ask|learn|find out|understand)(?: about| you)*+"
    r"|(?:i|we) (?:wonder|was wondering|am wondering)|(?:may|can|could) i ask(?: you)?"
    r"|i(?:'ve| have) (?:a|another) question(?: about)?"
)
_FRAME_CHINESE = (
    "请问(?:一下)?|(?:我|我们)?想(?:问|知道|了解|咨询|请教)(?:一下|下)?"
    "|(?:请|麻烦)?[你您]?(?:能不能|能否|可不可以|可否|可以|能)?(?:帮|替)(?:我|忙|个忙)?"
    "(?:看看|看一下|查查|查一下|查|找找|找一下|介绍一下|解释一下|说明一下|说说|讲讲)"
    "|[你您](?:知不知道|知道|了解|清楚)|(?:请|麻烦)?告诉我"
)
# What makes a request of a question; without a question after it, it is one to the chatbot.
_FRAME = (
    rf"(?P<before>^|[{_ENDS}])\s*(?:(?:{_FRAME_ENGLISH}) +(?=\w)"
    rf"|(?>{_FRAME_CHINESE})++(?=[\w《“「]))"
)
_LEADING = re.compile(rf"^[{_ENDS}\s]+")


@lru_cache(maxsize=4096)
def without_courtesy(text: str) -> str:
    """Return what remains of a message for whoever answers it, "" if nothing does.

    "Hello, could you tell me how long probation is?" asks how long probation is.
    """
    if len(text) > LONGEST:
        return text
    clause, opening, frame = _patterns()
    plain = _LEADING.sub("", clause.sub(r"\g<before>", text.strip()))
    plain = _LEADING.sub("", opening.sub("", plain))
    plain = _LEADING.sub("", frame.sub(r"\g<before>", plain))
    return plain if any(character.isalnum() for character in plain) else ""


@cache
def _patterns() -> Sequence[re.Pattern[str]]:
    """Return the patterns, compiled when first used: a start does not wait for them."""
    return [re.compile(each, re.IGNORECASE) for each in (_CLAUSE, _OPENING, _FRAME)]
