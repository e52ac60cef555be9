// Which test files boot VMs or open browsers: `*.long.test.ts`, and `*.story.test.ts` for the main
// story of a capability, which belongs to the fast tier.
import type { SourceFile } from '../source/tree.ts';

/** Modules that boot VMs of the QEMU driver or open browsers. */
export const SLOW = ['e2e/world/instance.ts', 'host/src/vm/qemu/driver.ts', 'api/test/pages/browser.ts'];
const ALLOWED = /\.(?:long|story)\.test\.ts$/;

export function testTiers(files: readonly SourceFile[]): string[] {
  return SLOW.flatMap((module) => {
    if (!files.some(({ path }) => path === module)) return `${module} does not exist: correct the list of this rule`;
    return importersOf(module, files)
      .filter((path) => path.endsWith('.test.ts') && !ALLOWED.test(path))
      .map((path) => `${path} uses ${module}: end its name with .long.test.ts or .story.test.ts`);
  });
}

/** Files that import the module, directly or through others. */
function importersOf(module: string, files: readonly SourceFile[]): string[] {
  const found = new Set([module]);
  for (const target of found)
    for (const { path, imports } of files) if (imports.some((one) => one.target === target)) found.add(path);
  return [...found];
}
