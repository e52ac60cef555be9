// Exported names that no other file imports. Files that another one imports as a whole are left
// out.
import type { SourceFile } from '../source/tree.ts';

/** The published modules of the SDK: programs outside the checkout import them. */
const PUBLISHED: ReadonlySet<string> = new Set(['sdk/src/index.ts', 'sdk/src/testing/index.ts']);

const DECLARED =
  /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const|let|function\*?|class|interface|type|enum)\s+(\w+)/gm;
const LISTED = /^export\s+(?:type\s+)?\{([^}]*)\}/gm;
const IMPORTED = /\b(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s+from\s+'([^']+)'/g;
const WHOLE = /\bimport\s+(?:type\s+)?\*\s+as\s+\w+\s+from\s+'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/g;

export function unusedExports(files: readonly SourceFile[]): string[] {
  const used = new Map<string, Set<string>>();
  const whole = new Set<string>();
  for (const file of files) {
    const targets = new Map(file.imports.map(({ specifier, target }) => [specifier, target]));
    for (const [, names = '', specifier = ''] of file.text.matchAll(IMPORTED)) {
      const target = targets.get(specifier) ?? '';
      const known = used.get(target) ?? new Set();
      for (const name of namesIn(names)) known.add(name.imported);
      used.set(target, known);
    }
    for (const [, one, other] of file.text.matchAll(WHOLE)) whole.add(targets.get(one ?? other ?? '') ?? '');
  }
  return files
    .filter(({ path }) => !PUBLISHED.has(path) && !whole.has(path))
    .flatMap(({ path, text }) =>
      exportsOf(text)
        .filter((name) => used.get(path)?.has(name) !== true)
        .map((name) => `${path}: no other file imports ${name}`),
    );
}

function exportsOf(text: string): string[] {
  const declared = [...text.matchAll(DECLARED)].map(([, name = '']) => name);
  const listed = [...text.matchAll(LISTED)].flatMap(([, names = '']) => namesIn(names).map((name) => name.local));
  return [...new Set([...declared, ...listed])];
}

/** `a, type b as c`: the name in the other file, and the name here. */
function namesIn(list: string): { imported: string; local: string }[] {
  return list
    .split(',')
    .map((part) =>
      part
        .replace(/\/\/.*$/gm, '')
        .trim()
        .replace(/^type\s+/, ''),
    )
    .filter((part) => part !== '')
    .map((part) => {
      const [imported = '', local = imported] = part.split(/\s+as\s+/);
      return { imported, local };
    });
}
