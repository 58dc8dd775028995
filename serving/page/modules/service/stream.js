// The events of an answer as they come; where the connection breaks, it is taken up again.

import { say } from "../words/language.js";
import { sessionAddress } from "./api.js";
import { jsonOptions, send, ServiceError } from "./http.js";

const SILENCE = 30_000; // The service says something every ten seconds.
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
const CLOSING = new Set(["end", "error"]);

/**
 * Ask, and return the events of the turn. `lost(true)` is called when the connection breaks and
 * `lost(false)` when it is there again. The answer goes on when nobody listens any more.
 */
export async function ask(body, { signal, lost }) {
  const response = await send("/api/chat", { ...jsonOptions("POST", { ...body, on_disconnect: "continue" }), signal });
  return followed(body.session_id, response, { signal, lost });
}

/** Return the events, from the first, of the answer that is being written; null where none is. */
export async function resume(session, { signal, lost }) {
  const response = await written(session, { signal });
  return response && followed(session, response, { signal, lost });
}

/** Return the response with the events of the answer that is being written; null where none is. */
async function written(session, options) {
  try {
    const response = await send(eventsAddress(session), options);
    return response.status === 204 ? null : response;
  } catch (error) {
    if (error.code === "not_found") return null;
    throw error;
  }
}

async function* followed(session, first, { signal, lost }) {
  const line = { last: null, pause: 0 };
  let response = first;
  for (;;) {
    try {
      for await (const { id, event } of framesOf(response)) {
        Object.assign(line, { last: id ?? line.last, pause: 0 });
        yield event;
        if (CLOSING.has(event.type)) return;
      }
    } catch (error) {
      if (signal.aborted) throw error;
    }
    lost(true);
    response = await connectedAgain(session, line, signal);
    lost(false);
  }
}

/** Try until there is a connection, more and more seldom, and whenever the network is back. */
async function connectedAgain(session, line, signal) {
  const headers = line.last ? { "Last-Event-ID": line.last } : {};
  for (;;) {
    await networkOr(line.pause * (0.75 + Math.random() / 2), signal);
    line.pause = Math.min(Math.max(line.pause * 2, FIRST_PAUSE), LONGEST_PAUSE);
    let response;
    try {
      response = await written(session, { headers, signal });
    } catch (error) {
      if (signal.aborted || !error.retryable) throw error;
      line.pause = Math.max(line.pause, (error.retry_after ?? 0) * 1000);
      continue;
    }
    if (response) return response;
    throw new ServiceError({ code: "cut_off", message: say("failure_cut_off") });
  }
}

function networkOr(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    const end = (act) => () => {
      clearTimeout(waiting);
      over.abort();
      act(signal.reason);
    };
    const waiting = setTimeout(end(resolve), milliseconds);
    addEventListener("online", end(resolve), { signal: over.signal });
    signal.addEventListener("abort", end(reject), { signal: over.signal });
  });
}

async function* framesOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  try {
    for (;;) {
      const { value, done } = await inTime(reader.read());
      if (done) return;
      const frames = (waiting + value).split("\n\n");
      waiting = frames.pop();
      for (const frame of frames) {
        const lines = frame.split("\n");
        const field = (name) => lines.find((line) => line.startsWith(name))?.slice(name.length);
        const data = field("data: ");
        if (data) yield { id: field("id: "), event: JSON.parse(data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Return what comes; a connection that is silent for too long is lost. */
function inTime(reading) {
  const { promise: silence, reject } = Promise.withResolvers();
  const waiting = setTimeout(() => reject(new Error("silence")), SILENCE);
  return Promise.race([reading, silence]).finally(() => clearTimeout(waiting));
}

const eventsAddress = (session) => `${sessionAddress(session)}/events`;
