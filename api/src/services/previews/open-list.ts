// A list with cheap insertion, iteration and removal of individual items, for high turnover. Not a
// Set or Map: V8 chains their former tables, so that removed items survive minor garbage
// collections.

interface Opened {
  /** Removes the item. Idempotent. */
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
    return { close: () => this.#remove(entry) };
  }

  /** Current items, newest first. */
  items(): Item[] {
    const items: Item[] = [];
    for (let entry = this.#newest; entry !== null; entry = entry.older) if (entry.item !== null) items.push(entry.item);
    return items;
  }

  #remove(entry: Entry<Item>): void {
    if (entry.item === null) return;
    if (entry.newer === null) this.#newest = entry.older;
    else entry.newer.older = entry.older;
    if (entry.older !== null) entry.older.newer = entry.newer;
    // Clear references, so that removed entries retain nothing.
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
