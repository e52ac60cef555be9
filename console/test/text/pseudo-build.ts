// Builds the console in a pseudo-language: each text in brackets and 40 % longer. The build wraps
// each object of texts.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { build, type Plugin } from 'vite';
import { CONSOLE, viteConfig } from '../../build/config.ts';

const TEXTS = join(CONSOLE, 'src/text/');
const DECLARATION = /^export const (\w+) = \{$/gm;

/**
 * The texts of a value in the pseudo-language, also those that its functions return. Runs in the
 * browser: refers to nothing outside.
 */
function pseudo(value: unknown): unknown {
  if (typeof value === 'string') {
    // Words, or a long word as in German.
    const filler = value.includes(' ') ? ' ȧǝḋ ŵøřđş' : 'ƚǿƞɠ';
    const length = Math.ceil(value.length * 0.4);
    return value === '' ? value : `[${value}${filler.repeat(length).slice(0, length)}]`;
  }
  if (typeof value === 'function')
    return (...values: unknown[]) => pseudo((value as (...values: unknown[]) => unknown)(...values));
  if (Array.isArray(value)) return value.map(pseudo);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, pseudo(one)]));
}

function pseudoTexts(): Plugin {
  return {
    name: 'pseudo-texts',
    enforce: 'pre',
    transform: (source, id) => {
      if (!id.startsWith(TEXTS)) return null;
      const names = [...source.matchAll(DECLARATION)].map(([, name]) => name);
      assert.ok(names.length > 0, `${id} exports no object of texts`);
      const wrapped = names.map((name) => `export const ${name} = pseudo(${name}Plain);\n`);
      return {
        code: `${source.replaceAll(DECLARATION, 'const $1Plain = {')}\n${pseudo.toString()}\n${wrapped.join('')}`,
        map: null,
      };
    },
  };
}

export async function buildPseudo(outDir: string): Promise<void> {
  const { plugins = [], build: options, ...config } = viteConfig();
  await build({ ...config, plugins: [...plugins, pseudoTexts()], build: { ...options, outDir, emptyOutDir: true } });
}
