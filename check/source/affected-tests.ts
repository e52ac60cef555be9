// The test files that a change can affect: those that reach a changed file through imports, or
// through a path in a string, as programs and documents are named.
import { basename, dirname, join, normalize } from 'node:path';
import type { SourceFile } from './tree.ts';

const STRING_PATH = /['"`]([\w./-]*\w\.\w+)['"`]/g;
const TEST_FILE = /\.test\.ts$/;
/** The real VMs run an image with the guest daemon in it. */
const REAL_VM = ['e2e/', 'host/test/vm/qemu/', 'host/test/pool/', 'host/test/network/', 'image/test/'];

/** Effects that no import and no string shows: changed files, and parts of the paths of tests. */
const EFFECTS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(?:package|package-lock|tsconfig)\.json$|^\.npmrc$|\/package\.json$/, ['']],
  [/^(?:guest|image)\/(?!test\/)/, REAL_VM],
  // The end-to-end tests start the launcher, which starts the CLI with the verbs of machine/.
  [/^berth$|^(?:cli|machine)\/src\//, ['e2e/']],
  [/^berth$/, ['cli/test/', 'machine/test/']],
  [/^docs\/.*\.md$/, ['contract/test/docs', 'e2e/guides/']],
];

/** @param changed paths relative to the root of the checkout, of files of any kind */
export function affectedTests(files: readonly SourceFile[], changed: readonly string[]): string[] {
  const known = new Set(files.map(({ path }) => path));
  const users = Map.groupBy(
    files.flatMap((file) => targetsOf(file, known).map((target) => ({ target, user: file.path }))),
    ({ target }) => target,
  );
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const { user } of users.get(path) ?? []) visit(user);
  };
  for (const path of changed) {
    visit(path);
    if (path.endsWith('.ts') || !basename(path).includes('.')) continue;
    for (const file of files) if (quotes(file.text, basename(path))) visit(file.path);
  }
  const parts = EFFECTS.filter(([pattern]) => changed.some((path) => pattern.test(path))).flatMap(([, tests]) => tests);
  return files
    .map(({ path }) => path)
    .filter((path) => TEST_FILE.test(path) && (reached.has(path) || parts.some((part) => path.includes(part))));
}

/** True if a string of the text ends with the file's name. */
function quotes(text: string, name: string): boolean {
  return [...text.matchAll(STRING_PATH)].some(([, string = '']) => string === name || string.endsWith(`/${name}`));
}

/** Imports, and source files that strings name, from the file's folder or from the root. */
function targetsOf({ path, text, imports }: SourceFile, known: ReadonlySet<string>): string[] {
  const named = [...text.matchAll(STRING_PATH)].flatMap(([, string = '']) => [
    normalize(join(dirname(path), string)),
    normalize(string),
  ]);
  return [...imports.flatMap(({ target }) => target ?? []), ...named.filter((target) => known.has(target))];
}
