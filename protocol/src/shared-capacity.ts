// A number of places shared by owners. An owner may hold at most half of the places that the others
// leave, so that none of them can take all. Imports nothing.

/** Gives a place back; repeated calls have no effect. */
export type Release = () => void;

export class SharedCapacity {
  readonly places: number;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();

  constructor(places: number) {
    this.places = places;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place. `full`: none is left. `share`: the owner holds its share of them. */
  take(owner: string): Release | 'full' | 'share' {
    if (this.#taken >= this.places) return 'full';
    const mine = this.#takenBy.get(owner) ?? 0;
    // Rounded up: the last place is usable.
    if (mine >= Math.ceil((this.places - (this.#taken - mine)) / 2)) return 'share';
    this.#add(owner, 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#add(owner, -1);
    };
  }

  #add(owner: string, count: 1 | -1): void {
    this.#taken += count;
    const left = (this.#takenBy.get(owner) ?? 0) + count;
    if (left === 0) this.#takenBy.delete(owner);
    else this.#takenBy.set(owner, left);
  }
}
