// What the service can be asked for.

import { say } from "../words/language.js";
import { request, send, sendJson, ServiceError } from "./http.js";

export const MOST_TURNS = 200;
const SESSION_PAGE = 200;

/** Return the latest conversations, at least so many if there are, and whether there are older ones. */
export async function listSessions(wanted) {
  const sessions = [];
  let page = [];
  do {
    const after = sessions.length ? `&before=${encodeURIComponent(sessions.at(-1).cursor)}` : "";
    page = (await request(`/api/sessions?limit=${SESSION_PAGE}${after}`)).sessions;
    sessions.push(...page);
  } while (page.length === SESSION_PAGE && sessions.length < wanted);
  return { sessions, older: page.length === SESSION_PAGE };
}
export const listAssistants = async () => (await request("/api/assistants")).assistants;
export const readImageLimits = () => request("/api/images");
export const readHealth = () => request("/health");

/** Return the suggested questions in a language. */
export async function listSuggestions(language) {
  return (await request(`/api/suggestions?language=${language}`)).suggestions;
}

/** Return the turns in which all words of a text were said, the newest first. */
export async function searchTurns(text) {
  return (await request(`/api/search?limit=50&text=${encodeURIComponent(text)}`)).matches;
}

/** Return the turns of a conversation; one that nobody has begun has none. */
export async function readSession(id) {
  try {
    return (await request(`${sessionAddress(id)}?limit=${MOST_TURNS}`)).turns;
  } catch (error) {
    if (error.code === "not_found") return [];
    throw error;
  }
}

/** Stop the answer in a conversation, and wait until what was said is kept. */
export const stopAnswer = (id) => request(`${sessionAddress(id)}/stop`, { method: "POST" });
export const deleteSession = (id) => request(sessionAddress(id), { method: "DELETE" });
export const renameSession = (id, title) => sendJson(sessionAddress(id), "PATCH", { title });
export const importSession = (data, session_id = null) => sendJson("/api/sessions/import", "POST", { data, session_id });
export const exportAddress = (id) => `${sessionAddress(id)}/export`;

/** Return how an answer came about. */
export const explainTurn = (id, turn) => request(`${turnAddress(id, turn)}/why`);
export const giveFeedback = (id, turn, feedback) => sendJson(`${turnAddress(id, turn)}/feedback`, "POST", feedback);

export const readUser = () => request("/api/me");
export const signOut = () => send("/api/sign-out", { method: "POST" });

/** Return the address of a conversation. Browsers take `.` and `..` for steps to another one. */
export function sessionAddress(id) {
  if (id !== "." && id !== "..") return `/api/sessions/${encodeURIComponent(id)}`;
  throw new ServiceError({ code: "no_address", message: say("failure_no_address"), retryable: false });
}

const turnAddress = (id, turn) => `${sessionAddress(id)}/turns/${encodeURIComponent(turn)}`;
