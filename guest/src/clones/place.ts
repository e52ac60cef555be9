// Moves a finished clone into place, entry by entry with git's own folder last, and remembers how
// far that came: what is interrupted is gone on with, what is done is never done again. Which
// folder is cloned into is decided by the caller. Follows whatever the tenant, who is root here,
// may put in its way.
//
//   (nothing) ──all of it is there──> moving ──every entry in place──> done
//                                        └── an entry cannot be moved ──> (nothing)
// Names are the bytes that they are: git's need not be UTF-8.
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A name in the code folder that the clone has too. */
export class NameTaken extends Error {
  override readonly name = 'NameTaken';

  constructor(entry: Buffer) {
    super(`${JSON.stringify(entry.toString('utf8').slice(0, 100))} is there already`);
  }
}

export type Place = { state: 'none' } | { state: 'moving'; folder: string } | { state: 'done' };

export class ClonePlace {
  readonly #stateFile: string;
  readonly #codeFolder: string;

  constructor(stateFile: string, codeFolder: string) {
    this.#stateFile = stateFile;
    this.#codeFolder = codeFolder;
  }

  /** A state that cannot be read is none: the clone starts anew. */
  read(): Place {
    try {
      const { state, folder } = JSON.parse(readFileSync(this.#stateFile, 'utf8')) as {
        state?: unknown;
        folder?: unknown;
      };
      if (state === 'done') return { state };

      if (state === 'moving' && typeof folder === 'string' && /^[\w.-]+$/.test(folder)) return { state, folder };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        console.error(`${this.#stateFile} cannot be read:`, error);
    }
    return { state: 'none' };
  }

  /**
   * Moves what is in `work`, a folder below `folder` of the code folder, and removes it. Throws
   * {@link NameTaken} before anything is moved, unless an entry of that name came in between.
   */
  take(folder: string): void {
    this.#refuseTaken(folder);
    this.#write({ state: 'moving', folder });
    this.goOn(folder);
  }

  /**
   * Moves what is left after an interruption. What cannot be moved is thrown, and the state is none
   * then: the rest is for the caller to remove.
   */
  goOn(folder: string): void {
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
      this.#refuseTaken(folder);
      for (const name of left.sort((one, other) => Number(isGit(one)) - Number(isGit(other))))
        renameSync(entryOf(work, name), entryOf(this.#codeFolder, name));

      rmdirSync(work);
    }
  }

  #refuseTaken(folder: string): void {
    const taken = entriesOf(join(this.#codeFolder, folder, 'work'))?.find(
      (name) => lstatSync(entryOf(this.#codeFolder, name), { throwIfNoEntry: false }) !== undefined,
    );
    if (taken !== undefined) throw new NameTaken(taken);
  }

  #write(place: Place): void {
    mkdirSync(dirname(this.#stateFile), { recursive: true, mode: 0o755 });
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

/** Null when there is no such folder. */
function entriesOf(folder: string): Buffer[] | null {
  try {
    return readdirSync(folder, { encoding: 'buffer' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;

    throw error;
  }
}
