// A person's terminal: curl, the CLI as `berth`, and Node.js with the SDK installed.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cleanEnvironment, MAIN } from '../../../cli/test/world/berth.ts';
import type { Language } from '../../src/rules/snippets.ts';

const run = promisify(execFile);
const SDK = join(import.meta.dirname, '../../../sdk');

export class Shell {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async start(): Promise<Shell> {
    const folder = await mkdtemp(join(tmpdir(), 'berth-shell-'));
    await mkdir(join(folder, 'bin'));
    await mkdir(join(folder, 'node_modules/@berth'), { recursive: true });
    await symlink(SDK, join(folder, 'node_modules/@berth/sdk'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    const berth = join(folder, 'bin/berth');
    await writeFile(berth, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
    await chmod(berth, 0o755);
    return new Shell(folder);
  }

  /** Runs code in a new folder, in which it must leave nothing. Returns its output. */
  async paste(
    language: Language,
    code: string,
    variables: Readonly<Record<string, string>> = {},
    program = language === 'typescript' ? 'node' : 'sh',
  ): Promise<string> {
    const cwd = await mkdtemp(join(this.folder, 'run-'));
    const isFile = language === 'typescript';
    if (isFile) await writeFile(join(cwd, 'code.ts'), code);
    const env = cleanEnvironment({ PATH: `${join(this.folder, 'bin')}:${process.env['PATH']}`, ...variables });
    const { stdout } = await run(isFile ? process.execPath : program, isFile ? ['code.ts'] : ['-c', code], {
      cwd,
      env,
    });
    assert.deepEqual(await readdir(cwd), isFile ? ['code.ts'] : []);
    return stdout;
  }

  async close(): Promise<void> {
    await rm(this.folder, { recursive: true });
  }
}
