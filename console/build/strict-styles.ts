// Replaces the code of two packages that `style-src 'self'` blocks: style elements and style
// attributes become adopted style sheets and properties. A new version of a package that changes
// the code fails the build.
import { join } from 'node:path';
import type { Plugin } from 'vite';

interface Replacement {
  code: string;
  by: string;
  /** Occurrences in the file. */
  count: number;
}

const SHEET_ELEMENT = JSON.stringify(join(import.meta.dirname, '../src/ui/sheet-element.ts'));

/** By the end of the file's path. */
const REPLACEMENTS: Readonly<Record<string, { replacements: readonly Replacement[]; prefix?: string }>> = {
  '/@xterm/xterm/lib/xterm.mjs': {
    prefix: `import ${SHEET_ELEMENT};\n`,
    replacements: [
      { code: 'createElement("style")', by: 'createElement("berth-sheet")', count: 3 },
      {
        code: 't.setAttribute("style",`${t.getAttribute("style")||""}${e};`)',
        by: 't.style.cssText+=`${e};`',
        count: 1,
      },
    ],
  },
  // Takes its own branch for shadow roots, with an adopted sheet, in documents too.
  '/style-mod/src/style-mod.js': {
    replacements: [{ code: '!root.head && root.adoptedStyleSheets', by: 'root.adoptedStyleSheets', count: 1 }],
  },
};

export function strictStyles(): Plugin {
  return {
    name: 'strict-styles',
    transform(source, id) {
      const path = id.split('?', 1)[0] ?? '';
      const found = Object.entries(REPLACEMENTS).find(([ending]) => path.endsWith(ending))?.[1];
      if (found === undefined) return null;
      return { code: (found.prefix ?? '') + replaceAll(path, source, found.replacements), map: null };
    },
  };
}

/** Throws if a file has other occurrences than expected, or styles that no replacement covers. */
export function replaceAll(path: string, source: string, replacements: readonly Replacement[]): string {
  let code = source;
  for (const { code: before, by, count } of replacements) {
    const parts = code.split(before);
    if (parts.length - 1 !== count)
      throw new Error(`${path}: found ${parts.length - 1} times instead of ${count}: ${before}`);
    code = parts.join(by);
  }
  const rest = /(?:createElement|setAttribute)\(["']style["']/.exec(code);
  // style-mod keeps its branch for browsers without adopted sheets.
  if (rest !== null && !code.includes('adoptedStyleSheets')) throw new Error(`${path}: not replaced: ${rest[0]}`);
  return code;
}
