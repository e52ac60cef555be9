// Bridge programs that the host sent, by SHA-256, and the agents installed in the image.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { nullOn } from '@berth/os/errors.ts';
import { makeFolders } from '../machine/make-folder.ts';
import { Refused } from '../access/refused.ts';
import type { AgentProgram } from '../bridge/config.ts';
import { parseLine } from '../bridge/journal.ts';

/** An entry of the image's list. `needsMib`: free memory needed to start the agent. */
interface InstalledAgent extends AgentProgram {
  id: string;
  needsMib: number;
}

/** Agents of the image's list (`{ "agents": [...] }`). */
export function installedAgents(file: string): InstalledAgent[] {
  const text = nullOn(['ENOENT'], () => readFileSync(file));
  const { agents = [] } = (text === null ? {} : (parseLine(text) ?? {})) as { agents?: InstalledAgent[] };
  return agents;
}

export class BridgePrograms {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Path of the program; null if the guest does not have it, or only a part after a power cut. */
  path(sha256: string): string | null {
    const path = join(this.#folder, `${sha256}.mjs`);
    const code = nullOn(['ENOENT'], () => readFileSync(path));
    return code !== null && digestOf(code) === sha256 ? path : null;
  }

  /** Stores a program, and removes those that are not in `used`. */
  async store(sha256: string, content: Readable, used: ReadonlySet<string>): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of content) chunks.push(chunk as Buffer);
    const code = Buffer.concat(chunks);
    if (digestOf(code) !== sha256) throw new Refused(400, 'the bridge program has another SHA-256');

    makeFolders(0o700, dirname(this.#folder), this.#folder);
    const path = join(this.#folder, `${sha256}.mjs`);
    writeFileSync(`${path}.new`, code, { mode: 0o600 });
    renameSync(`${path}.new`, path);
    for (const name of readdirSync(this.#folder)) {
      const known = name.replace(/\.mjs$/, '');
      if (known !== sha256 && !used.has(known)) rmSync(join(this.#folder, name), { force: true });
    }
  }
}

function digestOf(code: Buffer): string {
  return createHash('sha256').update(code).digest('hex');
}
