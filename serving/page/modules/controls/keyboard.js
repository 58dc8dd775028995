// What keys mean.

/** Enter chooses a word while an input method composes; some browsers tell by the code alone. */
export const composing = (event) => event.isComposing || event.keyCode === 229;
