// Speaks to the service.

import { say } from "./language.js";

/** A failure with a stable code and a sentence for people. */
export class ServiceError extends Error {
  constructor({ code, message, retryable = true, retry_after = null }) {
    super(message);
    this.code = code;
    this.retryable = retryable;
    this.retryAfter = retry_after;
  }
}

export const listSessions = async () => (await request("/api/sessions?limit=200")).sessions;
export const listAssistants = async () => (await request("/api/assistants")).assistants;
export const readImageLimits = () => request("/api/images");
export const readHealth = () => request("/health");
export const deleteSession = (id) => request(sessionAddress(id), { method: "DELETE" });

/** Return the suggested questions in a language. */
export async function listSuggestions(language) {
  return (await request(`/api/suggestions?language=${language}`)).suggestions;
}

/** Stop the answer in a conversation, and wait until what was said is kept. */
export const stopAnswer = (id) => request(`${sessionAddress(id)}/stop`, { method: "POST" });

/** Return the turns of a conversation; one that nobody has begun has none. */
export async function readSession(id) {
  try {
    return (await request(sessionAddress(id))).turns;
  } catch (error) {
    if (error.code === "not_found") return [];
    throw error;
  }
}

/** Ask, and yield the events of the turn. Aborting `signal` stops the answer. */
export async function* ask(body, signal) {
  const response = await send("/api/chat", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const frames = (waiting + value).split("\n\n");
      waiting = frames.pop();
      for (const frame of frames) {
        const data = frame.split("\n").find((line) => line.startsWith("data: "));
        if (data) yield JSON.parse(data.slice("data: ".length));
      }
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ServiceError({ code: "cut_off", message: say("cutOff") });
  } finally {
    reader.cancel().catch(() => {});
  }
}

const sessionAddress = (id) => `/api/sessions/${encodeURIComponent(id)}`;

async function request(address, options) {
  const response = await send(address, options);
  try {
    return await response.json();
  } catch {
    throw new ServiceError({ code: "unreadable", message: say("unreadable") });
  }
}

async function send(address, options = {}) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ServiceError({ code: "offline", message: say("offline") });
  }
  if (response.ok) return response;
  const reply = await response.json().catch(() => null);
  throw new ServiceError(reply?.error ?? { code: "unreadable", message: say("unreadable") });
}
