// What the service can be asked for.

import { request, send, sendJson } from "./http.js";

export const MOST_TURNS = 200;

export const listSessions = async () => (await request("/api/sessions?limit=200")).sessions;
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

export const sessionAddress = (id) => `/api/sessions/${encodeURIComponent(id)}`;
const turnAddress = (id, turn) => `${sessionAddress(id)}/turns/${encodeURIComponent(turn)}`;
