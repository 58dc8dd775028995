// Why an answer is as it is: its way, what was found, what it cost.

import { copyButton } from "../controls/copying.js";
import { element } from "../controls/dom.js";
import { explainTurn } from "../service/api.js";
import { say, words } from "../words/language.js";
import { degradedWords } from "./degraded.js";
import { failureNote } from "./failure.js";
import { passageList } from "./why-passages.js";
import { milliseconds, timeBars } from "./why-times.js";

const CALLS = { router: "stepRoute", rewrite_question: "stepRewrite", head_start: "begunEarly", summarize: "stepHistory" };
const EARLY = { used: "earlyUsed", unused: "earlyUnused", failed: "earlyFailed" };

/** Return the panel, which fills itself; `grown(panel)` is called when there is more to see. */
export function whyPanel(session, turn, grown) {
  const root = element("section", { class: "why" }, words("whyLoading", {}, "p"));
  const load = async () => {
    try {
      root.replaceChildren(...sections(await explainTurn(session, turn)));
    } catch (error) {
      root.replaceChildren(failureNote(error, { retry: load }));
    }
    grown(root);
  };
  load();
  return root;
}

function sections({ turn, record, trace_url: link }) {
  return [
    section("whyWay", facts(wayFacts(turn, record))),
    ...passageList(record),
    section("whyModel", facts(modelFacts(turn, record))),
    section("whyTime", timeBars(record)),
    section("whyNames", facts(nameFacts(turn, record, link))),
  ].filter(Boolean);
}

function wayFacts(turn, record) {
  const searched = turn.intent === "knowledge_base";
  return [
    ["route", turn.intent && words(searched ? "routeKnowledge" : "routeChat")],
    ["reason", reasonWords(turn.reason)],
    ["original", turn.question],
    ["query", searched && turn.enhanced_query !== turn.question && turn.enhanced_query],
    ["asked", turn.assistants.join(say("comma"))],
    ["tools", record.tools?.map(({ name, failed }) => `${name}${failed ? ` (${say("toolFailed")})` : ""}`).join(say("comma"))],
    ["cut", cutWords(record.cut)],
    ...turn.degraded.map((each) => ["limited", degradedWords(each)]),
    ["failure", turn.error?.message],
  ];
}

function modelFacts({ usage }, record) {
  const { endpoint, attempts = [] } = record;
  const input = usage.input_tokens ?? "?";
  const output = usage.output_tokens ?? "?";
  const counted = usage.input_tokens != null || usage.output_tokens != null;
  return [
    ["model", usage.model],
    ["endpoint", endpoint !== usage.model && endpoint],
    ["attempts", attempts.map(({ endpoint: name, kind }) => `${name}: ${kind}`).join(say("comma"))],
    ["tokens", counted && words(usage.estimated ? "tokensEstimated" : "tokensValue", { input, output })],
    ["tokensOther", (usage.other ?? []).map(callWords).join(" · ")],
    ["begunEarly", earlyWords(record)],
    ["readEarly", record.route_early && words("readEarlyText")],
    ["firstToken", milliseconds(usage.first_token_ms)],
    ["total", milliseconds(usage.total_ms)],
  ];
}

function nameFacts(turn, { trace_id: trace }, link) {
  return [
    ["turnId", copied(turn.id)],
    ["traceId", trace && copied(trace, link)],
  ];
}

function copied(id, link) {
  const code = element("code", {}, id);
  const shown = link ? element("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, code) : code;
  return element("span", { class: "id" }, shown, copyButton(() => id));
}

/** What the router says of itself, in words for people. */
function reasonWords(reason) {
  if (/^the (?:caller|user) chose/.test(reason)) return words("reasonChosen");
  const failure = /^default route: (.*)/s.exec(reason);
  if (failure) return words("reasonDefault", { failure: failure[1] });
  if (/^the model called \w+$/.test(reason)) return words("reasonModel");
  return reason;
}

/** What was begun before it was known to be wanted, and whether it was of use. */
function earlyWords({ prefetch, head_start: answer }) {
  const state = (found) => say(EARLY[found] ?? "earlyUnused");
  const parts = [prefetch && say("earlySearches", { state: state(prefetch) }), answer && say("earlyAnswer", { state: state(answer) })];
  return parts.filter(Boolean).join(say("comma"));
}

/** What a call of a model beside the answer used. */
function callWords({ step, estimated, input_tokens: input, output_tokens: output }) {
  const tokens = say(estimated ? "tokensEstimated" : "tokensValue", { input, output });
  return `${CALLS[step] ? say(CALLS[step]) : step}: ${tokens}`;
}

function cutWords({ turns = 0, passages = 0, results = 0 } = {}) {
  const parts = [turns && say("cutTurns", { count: turns }), passages && say("cutPassages", { count: passages }), results && say("cutResults", { count: results })];
  return parts.filter(Boolean).join(say("comma"));
}

function facts(rows) {
  const told = rows.filter(([, value]) => value);
  if (!told.length) return null;
  return element("dl", {}, told.flatMap(([key, value]) => [words(key, {}, "dt"), element("dd", { dir: "auto" }, value)]));
}

function section(title, content) {
  return content && element("section", {}, words(title, {}, "h4"), content);
}
