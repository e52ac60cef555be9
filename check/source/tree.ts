// The tracked files of the checkout, and the imports between the TypeScript files among them.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NOT_OURS = /\/(?:generated|vendor)\//;
const TEST = /(?:^|\/)test\/|\.test\.ts$|^e2e\//;
const IMPORT = /^(?:import|export)\s[^;']*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\(\s*'([^']+)'/gm;

export interface SourceFile {
  /** Relative to the root of the checkout. */
  path: string;
  text: string;
  lines: readonly string[];
  isTest: boolean;
  imports: readonly Import[];
}

interface Import {
  /** As written. */
  specifier: string;
  /** The imported file of this checkout, relative to its root. Null: a package or Node module. */
  target: string | null;
}

/** Reads every tracked TypeScript file that is neither generated nor a copy of a library. */
export function readTree(root = ROOT): SourceFile[] {
  const options = { cwd: root, encoding: 'utf8' } as const;
  const arguments_ = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '*.ts', '*.tsx'];
  const listed = execFileSync('git', arguments_, options).split('\0');
  const known = new Set(listed.filter((path) => path !== '' && existsSync(join(root, path))));
  const paths = [...known].filter((path) => !NOT_OURS.test(path));
  return paths.sort().map((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    const specifiers = [...text.matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
    return {
      path,
      text,
      lines: text.replace(/\n$/, '').split('\n'),
      isTest: TEST.test(path),
      imports: specifiers.map((specifier) => ({ specifier, target: targetOf(path, specifier, known) })),
    };
  });
}

function targetOf(path: string, specifier: string, known: ReadonlySet<string>): string | null {
  const target = specifier.startsWith('.')
    ? normalize(join(dirname(path), specifier))
    : specifier.replace(/^@berth\/([^/]+)\/(?:src\/)?/, '$1/src/');
  return known.has(target) ? target : null;
}
