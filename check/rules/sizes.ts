// Sizes that keep files and folders readable.
import { dirname } from 'node:path';
import type { SourceFile } from '../source/tree.ts';

const FILE_LINES = 300;
export const TEST_LINES = 500;
export const FOLDER_FILES = 20;

export function fileLengths(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, lines, isTest }) => {
    const limit = isTest ? TEST_LINES : FILE_LINES;
    return lines.length > limit ? [`${path}: ${lines.length} lines, limit ${limit}`] : [];
  });
}

export function folderSizes(files: readonly SourceFile[]): string[] {
  const counts = new Map<string, number>();
  for (const { path } of files) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > FOLDER_FILES)
    .map(([folder, count]) => `${folder}: ${count} files, limit ${FOLDER_FILES}`);
}
