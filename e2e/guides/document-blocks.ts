// The code blocks of a documentation page, in order, as a reader copies them. Runs nothing.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface Block {
  language: string;
  code: string;
  /** Heading above the block. */
  heading: string;
}

/** @param page path below docs/, such as `quick-start.md` */
export async function blocksOf(page: string): Promise<Block[]> {
  const text = await readFile(join(import.meta.dirname, '../../docs', page), 'utf8');
  const blocks: Block[] = [];
  let heading = '';
  for (const [, title, language, code] of text.matchAll(/^#+ (.*)$|^```(\w*)\n([^]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    else blocks.push({ language: language ?? '', code: code ?? '', heading });
  }
  return blocks;
}

/** An output block as a pattern: `…` matches anything within a line. */
export function printed(expected: string): RegExp {
  const pattern = expected
    .trim()
    .replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
    .replaceAll('…', '[^\\n]*');
  return new RegExp(`^${pattern}$`);
}
