// What is open at the moment, where much comes and goes: to be looked through, and each taken out
// by itself. Not a Set or Map: V8 leaves each of their former tables pointing to the next, so that
// all that was ever in one outlives the small collections of garbage.

export interface Opened {
  /** Takes it out. Idempotent. */
  close(this: void): void;
}

export class OpenList<Item> {
  #newest: Entry<Item> | null = null;

  get isEmpty(): boolean {
    return this.#newest === null;
  }

  add(item: Item): Opened {
    const entry: Entry<Item> = { item, newer: null, older: this.#newest };
    if (entry.older !== null) entry.older.newer = entry;
    this.#newest = entry;
    return { close: () => this.#takeOut(entry) };
  }

  /** Those of this moment, the newest first. */
  items(): Item[] {
    const items: Item[] = [];
    for (let entry = this.#newest; entry !== null; entry = entry.older) if (entry.item !== null) items.push(entry.item);
    return items;
  }

  #takeOut(entry: Entry<Item>): void {
    if (entry.item === null) return;
    if (entry.newer === null) this.#newest = entry.older;
    else entry.newer.older = entry.older;
    if (entry.older !== null) entry.older.newer = entry.newer;
    // What is out leads nowhere.
    entry.item = null;
    entry.newer = null;
    entry.older = null;
  }
}

interface Entry<Item> {
  item: Item | null;
  newer: Entry<Item> | null;
  older: Entry<Item> | null;
}
