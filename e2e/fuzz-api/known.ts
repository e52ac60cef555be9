// Ids seen in responses so far, by the kind of object. Requests refer to these.
import { PlaceholderIds } from './values.ts';

/** Keeps the newest, most of which still exist. */
const KEPT = 6;

export class Known {
  readonly #ids = new Map<string, string[]>();

  /**
   * Collects ids from a response: the `id` of an object below a name (`sandbox`, or an element of
   * `sandboxes`), and fields such as `orgId`; cursors and paths as well.
   */
  learn(answer: unknown, name = ''): void {
    if (Array.isArray(answer)) {
      for (const one of answer) this.learn(one, name.replace(/ies$/, 'y').replace(/s$/, '').replace(/boxe$/, 'box'));
      return;
    }
    if (typeof answer !== 'object' || answer === null) return;
    for (const [key, value] of Object.entries(answer)) {
      if (typeof value === 'string' && value !== '') {
        if (key === 'id') this.#note(`${name}Id`, value);
        else if (key.endsWith('Id') || key === 'nextCursor' || key === 'path') this.#note(key, value);
      } else {
        this.learn(value, key);
      }
    }
  }

  /** Returns the value with its placeholders filled in. */
  fill(value: unknown): unknown {
    if (value instanceof PlaceholderIds) return this.#one(value);
    if (Array.isArray(value)) return value.map((one) => this.fill(one));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.fill(one)]));
  }

  #note(name: string, id: string): void {
    const ids = this.#ids.get(name) ?? [];
    this.#ids.set(name, [id, ...ids.filter((one) => one !== id)].slice(0, KEPT));
  }

  #one({ name, pick, otherwise }: PlaceholderIds): string {
    const exact = this.#ids.get(name);
    // A parameter `keyId` matches the id of an `apiKey`.
    const ids = exact ?? [...this.#ids].find(([known]) => known.toLowerCase().endsWith(name.toLowerCase()))?.[1] ?? [];
    return ids[pick % Math.max(1, ids.length)] ?? otherwise;
  }
}
