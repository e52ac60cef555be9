// No import cycles, neither between files nor between folders. A folder stands for the files
// directly in it.
import { dirname } from 'node:path';
import { findCycles } from '../source/cycles.ts';
import type { SourceFile } from '../source/tree.ts';

export function importCycles(files: readonly SourceFile[]): string[] {
  return [...cyclesBetween(files, (path) => path, 'files'), ...cyclesBetween(files, dirname, 'folders')];
}

function cyclesBetween(files: readonly SourceFile[], nodeOf: (path: string) => string, kind: string): string[] {
  const graph = new Map<string, Set<string>>();
  const examples = new Map<string, string>();
  for (const { path, imports } of files) {
    for (const { target } of imports) {
      if (target === null) continue;
      const [from, to] = [nodeOf(path), nodeOf(target)];
      if (from === to) continue;
      graph.set(from, (graph.get(from) ?? new Set()).add(to));
      if (!graph.has(to)) graph.set(to, new Set());
      examples.set(`${from} ${to}`, `${path} -> ${target}`);
    }
  }
  return findCycles(graph).map((group) => {
    const members = new Set(group);
    const edges = [...examples].filter(([key]) => key.split(' ').every((node) => members.has(node)));
    return `import cycle between ${kind} ${group.join(', ')}:\n    ${edges.map(([, edge]) => edge).join('\n    ')}`;
  });
}
