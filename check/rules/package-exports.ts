// Imports between workspaces use the package's name, so that its `exports` list decides what they
// reach: TypeScript and Node both enforce that list. Tests and benchmarks may reach further.
import type { SourceFile } from '../source/tree.ts';

const SOURCE = /^([^/]+)\/src\//;

export function packageExports(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports, isTest }) => {
    const workspace = SOURCE.exec(path)?.[1];
    if (workspace === undefined || isTest) return [];
    return imports.flatMap(({ specifier, target }) =>
      specifier.startsWith('.') && target !== null && !target.startsWith(`${workspace}/`)
        ? [`${path} imports ${specifier}: import @berth/${target.replace(/\/src\//, '/')}`]
        : [],
    );
  });
}
