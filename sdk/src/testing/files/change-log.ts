// Changes of the files of a test sandbox, for its watches. They never end.
import type { FileChange, FileChanges } from '../../generated/raw/index.ts';

/** Changes that are kept. */
const KEPT = 4_096;
/** Changes in a response. */
const MOST = 1_000;

export class ChangeLog {
  #changes: FileChange[] = [];
  /** Number of the change before the first that is kept. */
  #lost = 0;
  /** Ids of watches, by folder. */
  readonly #ids = new Map<string, string>();

  add(change: FileChange): void {
    this.#changes.push(change);
    const surplus = this.#changes.length - KEPT;
    if (surplus <= 0) return;
    this.#changes = this.#changes.slice(surplus);
    this.#lost += surplus;
  }

  after(folder: string, recursive: boolean, cursor: string | undefined): Omit<FileChanges, 'path'> {
    const key = `${recursive} ${folder}`;
    const id = this.#ids.get(key) ?? (this.#ids.size + 1).toString(16).padStart(16, '0');
    this.#ids.set(key, id);
    const last = this.#lost + this.#changes.length;
    const [given, digits] = cursor?.split('.') ?? [];
    const from = Number(digits);
    if (given !== id || from < this.#lost || from > last)
      return { changes: [], cursor: `${id}.${last}`, reset: cursor !== undefined };
    const changes: FileChange[] = [];
    let at = from;
    for (const change of this.#changes.slice(from - this.#lost)) {
      if (changes.length === MOST) break;
      at += 1;
      if (isIn(folder, recursive, change.path)) changes.push(change);
    }
    return { changes, cursor: `${id}.${at}`, reset: false };
  }
}

function isIn(folder: string, recursive: boolean, path: string): boolean {
  const above = folder === '/' ? folder : `${folder}/`;
  return path === folder || (path.startsWith(above) && (recursive || !path.slice(above.length).includes('/')));
}
