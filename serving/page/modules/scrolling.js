// Follows a growing answer, unless its reader has scrolled away from the end.

const NEAR = 90;

export class Follower {
  #following = true;

  constructor(root) {
    this.root = root;
    root.addEventListener("scroll", () => {
      this.#following = root.scrollHeight - root.scrollTop - root.clientHeight < NEAR;
    }, { passive: true });
    root.addEventListener("grown", () => {
      if (this.#following) this.toEnd();
    });
  }

  toEnd() {
    this.#following = true;
    this.root.scrollTop = this.root.scrollHeight;
  }
}
