// A source file as the rules see it, made from a text.
import type { SourceFile } from '../source/tree.ts';

/** @param targets the files of the checkout that the file imports */
export function sourceFile(path: string, text: string, targets: readonly string[] = []): SourceFile {
  const imports = targets.map((target) => ({ specifier: `./${target}`, target }));
  return { path, text, lines: text.split('\n'), isTest: path.includes('/test/'), imports };
}
