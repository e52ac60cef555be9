// Cost of test files, measured by `./berth test --profile` and stored in a table of the docs. The
// table also orders the runs.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKOUT } from '../config/folders.ts';

const TABLE = join(CHECKOUT, 'docs/measurements/test-suite.md');
const ROW = /^\| `(?<file>[^`]+)` \| (?<seconds>[\d.]+) \| (?<cpuSeconds>[\d.]+|-) \|/gm;
const BEGIN = '<!-- files: written by ./berth test --profile -->';

export interface Cost {
  /** Wall time of the file's process. */
  seconds: number;
  /** CPU time of all processes of the file; null if not measured. */
  cpuSeconds: number | null;
}

export async function readCosts(): Promise<Map<string, Cost>> {
  return parseCosts(await readFile(TABLE, 'utf8'));
}

export function parseCosts(text: string): Map<string, Cost> {
  return new Map(
    [...text.matchAll(ROW)].map(({ groups }) => {
      const { file = '', seconds, cpuSeconds } = groups ?? {};
      return [file, { seconds: Number(seconds), cpuSeconds: cpuSeconds === '-' ? null : Number(cpuSeconds) }];
    }),
  );
}

/** Replaces the table and keeps the text above it. */
export async function writeCosts(costs: ReadonlyMap<string, Cost>): Promise<void> {
  const text = await readFile(TABLE, 'utf8');
  const end = text.indexOf(BEGIN);
  if (end < 0) throw new Error(`${TABLE} lacks the line ${BEGIN}`);
  await writeFile(TABLE, `${text.slice(0, end)}${BEGIN}\n\n${formatCosts(costs)}`);
}

/** Totals per workspace, and a row per file, by CPU time descending. */
export function formatCosts(costs: ReadonlyMap<string, Cost>): string {
  const files = [...costs].map(([file, cost]) => ({
    name: `\`${file}\``,
    workspace: file.split('/', 1)[0] ?? '',
    ...cost,
  }));
  const workspaces = Map.groupBy(files, ({ workspace }) => workspace);
  const totals = [...workspaces, ['all', files] as const].map(([workspace, of]) => ({
    name: `${workspace} (${of.length} files)`,
    seconds: of.reduce((sum, { seconds }) => sum + seconds, 0),
    cpuSeconds: of.reduce((sum, { cpuSeconds }) => sum + (cpuSeconds ?? 0), 0),
  }));
  return `${table('Workspace', totals)}\n${table('File', files)}`;
}

interface Row extends Cost {
  name: string;
}

function table(title: string, rows: readonly Row[]): string {
  const lines = rows
    .toSorted((a, b) => (b.cpuSeconds ?? 0) - (a.cpuSeconds ?? 0))
    .map(({ name, seconds, cpuSeconds }) => {
      const waiting = cpuSeconds === null ? '-' : Math.max(0, seconds - cpuSeconds).toFixed(1);
      return `| ${name} | ${seconds.toFixed(1)} | ${cpuSeconds?.toFixed(1) ?? '-'} | ${waiting} |\n`;
    });
  return `| ${title} | Wall s | CPU s | Waiting s |\n| --- | --: | --: | --: |\n${lines.join('')}`;
}
