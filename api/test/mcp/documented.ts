// The commands and files of docs/mcp.md, run as they are written.
import { execFile } from 'node:child_process';
import { dirname, delimiter } from 'node:path';
import { promisify } from 'node:util';
import { blocksOf } from '../../../e2e/guides/document-blocks.ts';

const run = promisify(execFile);
const DEADLINE_MS = 120_000;

/** A block of the language below the heading; the first unless `index` selects another. */
export async function documented(heading: string, language: 'sh' | 'toml', index = 0): Promise<string> {
  const blocks = (await blocksOf('mcp.md')).filter((block) => block.heading === heading && block.language === language);
  const code = blocks[index]?.code;
  if (code === undefined) throw new Error(`docs/mcp.md has no block ${index} of ${language} below ${heading}`);
  return code;
}

export interface Shell {
  folder: string;
  /** First folders of the path. */
  programs: readonly string[];
  environment: Readonly<Record<string, string>>;
}

/** Runs shell code; resolves with stdout. */
export async function paste(code: string, { folder, programs, environment }: Shell): Promise<string> {
  const path = [...programs, dirname(process.execPath), process.env['PATH']].join(delimiter);
  const running = run('bash', ['--norc', '-eo', 'pipefail', '-c', code], {
    cwd: folder,
    env: { PATH: path, HOME: folder, ...environment },
    timeout: DEADLINE_MS,
    maxBuffer: 16 * 1_048_576,
  });
  running.child.stdin?.end();
  return (await running).stdout;
}
