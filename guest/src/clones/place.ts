// Moves a finished clone into place, entry by entry, `.git` last, and records the progress: an
// interrupted move is continued, a finished one never repeated. The caller chooses the folder.
// Follows links set by the tenant, who is root in the guest. Names are bytes: git's names need not
// be UTF-8.
//
//   (nothing) ──fetched completely──> moving ──every entry in place──> done
//                                       └── an entry cannot be moved ──> (nothing)
import { lstatSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hasCode, nullOn } from '@berth/os/errors.ts';
import { makeFolders } from '../machine/make-folder.ts';

/** A name of the clone already exists in the code folder. */
export class NameTaken extends Error {
  override readonly name = 'NameTaken';

  constructor(entry: Buffer) {
    super(`${JSON.stringify(entry.toString('utf8').slice(0, 100))} is there already`);
  }
}

type Place = { state: 'none' } | { state: 'moving'; folder: string } | { state: 'done' };

export class ClonePlace {
  readonly #stateFile: string;
  readonly #codeFolder: string;

  constructor(stateFile: string, codeFolder: string) {
    this.#stateFile = stateFile;
    this.#codeFolder = codeFolder;
  }

  /** An unreadable state counts as none: the clone starts anew. */
  read(): Place {
    try {
      const { state, folder } = JSON.parse(readFileSync(this.#stateFile, 'utf8')) as {
        state?: unknown;
        folder?: unknown;
      };
      if (state === 'done') return { state };

      if (state === 'moving' && typeof folder === 'string' && /^[\w.-]+$/.test(folder)) return { state, folder };
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) console.error(`${this.#stateFile} cannot be read:`, error);
    }
    return { state: 'none' };
  }

  /**
   * Moves the entries of `work`, a folder below `folder` of the code folder, and removes `work`.
   * Throws {@link NameTaken} before moving anything, unless an entry of that name appears
   * meanwhile.
   */
  take(folder: string): void {
    this.#requireEmpty(folder);
    this.#write({ state: 'moving', folder });
    this.finishMove(folder);
  }

  /**
   * Moves the remaining entries after an interruption. Throws when an entry cannot be moved; the
   * state is then none, and the caller must remove the rest.
   */
  finishMove(folder: string): void {
    try {
      this.#move(folder);
    } catch (error) {
      rmSync(this.#stateFile, { force: true });
      throw error;
    }
    this.#write({ state: 'done' });
  }

  #move(folder: string): void {
    const work = join(this.#codeFolder, folder, 'work');
    const left = entriesOf(work);
    if (left !== null) {
      this.#requireEmpty(folder);
      for (const name of left.sort((one, other) => Number(isGit(one)) - Number(isGit(other))))
        renameSync(entryOf(work, name), entryOf(this.#codeFolder, name));

      rmdirSync(work);
    }
  }

  #requireEmpty(folder: string): void {
    const taken = entriesOf(join(this.#codeFolder, folder, 'work'))?.find(
      (name) => lstatSync(entryOf(this.#codeFolder, name), { throwIfNoEntry: false }) !== undefined,
    );
    if (taken !== undefined) throw new NameTaken(taken);
  }

  #write(place: Place): void {
    makeFolders(0o755, dirname(this.#stateFile));
    writeFileSync(`${this.#stateFile}.new`, JSON.stringify(place), { mode: 0o600 });
    renameSync(`${this.#stateFile}.new`, this.#stateFile);
  }
}

function isGit(name: Buffer): boolean {
  return name.toString('latin1') === '.git';
}

function entryOf(folder: string, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${folder}/`), name]);
}

/** null: no such folder. */
function entriesOf(folder: string): Buffer[] | null {
  return nullOn(['ENOENT'], () => readdirSync(folder, { encoding: 'buffer' }));
}
