// A scrolled place that keeps its end in view while it grows, until the user scrolls away from the end.

// At most so many pixels from the end counts as the end.
const NEAR = 24;

export class Follower {
  #place;
  #isFollowing = false;
  #isDue = false;
  // Where the place was scrolled to by this class.
  #top = 0;

  constructor(place) {
    this.#place = place;
    // (Scrolling down by less than the growth of the place is not scrolling away.)
    place.onscroll = () => {
      const { scrollTop, scrollHeight, clientHeight } = place;
      if (scrollHeight - clientHeight - scrollTop <= NEAR) this.#isFollowing = true;
      else if (scrollTop < this.#top) this.#isFollowing = false;
    };
  }

  /** Show the end, and keep it in view. */
  start() {
    this.#isFollowing = true;
    this.follow();
  }

  /** The place has grown. It is scrolled once a frame: each time the browser lays out the whole place. */
  follow() {
    if (!this.#isFollowing || this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      if (!this.#isFollowing) return;
      this.#place.scrollTop = this.#place.scrollHeight;
      this.#top = this.#place.scrollTop;
    });
  }
}
