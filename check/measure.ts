// `npm run measure`: the size of the tree, as a table per workspace in Markdown.
import { dirname } from 'node:path';
import { importCycles } from './rules/import-cycles.ts';
import { readTree, ROOT, type SourceFile } from './source/tree.ts';

const files = readTree(process.argv[2] ?? ROOT);
const workspaceOf = ({ path }: SourceFile): string => path.split('/')[0] ?? '';

/** The nearest-rank percentile of the lengths. */
function percentile(lengths: readonly number[], share: number): number {
  const sorted = lengths.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

const sum = (lengths: readonly number[]): number => lengths.reduce((total, length) => total + length, 0);
const isComment = (line: string): boolean => /^\s*(?:\/\/|\/?\*)/.test(line);

function row(name: string, some: readonly SourceFile[]): string {
  const sources = some.filter(({ isTest }) => !isTest);
  const lengths = sources.map(({ lines }) => lines.length);
  const total = sum(lengths);
  const comments = sum(sources.map(({ lines }) => lines.filter(isComment).length));
  const testLines = sum(some.filter(({ isTest }) => isTest).map(({ lines }) => lines.length));
  const folders = Map.groupBy(some, ({ path }) => dirname(path));
  const largest = Math.max(...[...folders.values()].map((inside) => inside.length));
  const cells = [sources.length, total, percentile(lengths, 0.5), percentile(lengths, 0.9), Math.max(0, ...lengths)];
  const share = total === 0 ? 0 : (100 * comments) / total;
  return `| ${[name, ...cells, `${share.toFixed(1)} %`, testLines, folders.size, largest].join(' | ')} |`;
}

console.log('| workspace | files | lines | median | p90 | longest | comments | test lines | folders | most files |');
console.log('| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |');
for (const [name, some] of Map.groupBy(files, workspaceOf)) console.log(row(name, some));
console.log(row('all', files));
console.log(`\nImport cycles between files or folders: ${importCycles(files).length}`);
