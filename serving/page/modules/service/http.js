// Sends requests, and makes every failure a sentence for people.

import { say } from "../words/language.js";

/** A failure with a stable code and a sentence for people. */
export class ServiceError extends Error {
  constructor({ code, message, retryable = true, retry_after = null }) {
    super(message);
    this.code = code;
    this.retryable = retryable;
    this.retry_after = retry_after;
  }
}

let signIn = null;
let signIns = 0;

/** Let `ask()` be called where the service wants to know who somebody is; then it is asked again. */
export function whenSignedOut(ask) {
  signIn = ask;
}

/** Return what the service answers, as JSON. */
export async function request(address, options) {
  const response = await send(address, options);
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch {
    throw new ServiceError({ code: "unreadable", message: say("failure_unreadable") });
  }
}

/** Send JSON and return what the service answers. */
export const sendJson = (address, method, body) => request(address, jsonOptions(method, body));

export function jsonOptions(method, body) {
  return { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

/** Return the response, once there is one that is no failure. */
export async function send(address, options = {}) {
  for (;;) {
    const before = signIns;
    const response = await attempt(address, options);
    if (response.ok) return response;
    const failure = await failureOf(response);
    if (response.status !== 401 || !signIn || options.signingIn) throw failure;
    if (signIns > before) continue; // somebody signed in while the refusal was on its way
    await signIn();
    signIns += 1;
  }
}

async function attempt(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ServiceError({ code: "offline", message: say("failure_offline") });
  }
}

async function failureOf(response) {
  const reply = await response.json().catch(() => null);
  const told = reply?.error ?? { code: "unreadable", message: say("failure_unreadable"), retryable: response.status >= 500 };
  const seconds = Number(response.headers.get("Retry-After")) || null;
  return new ServiceError({ ...told, retry_after: told.retry_after ?? seconds });
}
