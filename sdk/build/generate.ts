// `npm run sdk:generate`: writes sdk/src/generated from the contract. A test compares the result
// with the repository.
import { registerHooks } from 'node:module';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { contractModules } from './contract-tables.ts';
import { openEnumerations, rawDocument } from './raw-document.ts';

/** Empties the folder and writes all modules. */
export async function generate(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await generateRaw(join(folder, 'raw'));
  for (const [name, text] of Object.entries(await contractModules())) await writeFile(join(folder, name), text);
}

async function generateRaw(path: string): Promise<void> {
  // The generator needs TypeScript's compiler API, which version 7 of the checks lacks.
  const own = import.meta.resolve('typescript');
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'typescript' ? { url: own, format: 'commonjs', shortCircuit: true } : next(specifier, context),
  });
  const { createClient } = await import('@hey-api/openapi-ts');
  await createClient({
    input: rawDocument(),
    output: { path, module: { extension: '.ts' } },
    logs: { level: 'silent', file: false },
    plugins: [
      { name: '@hey-api/typescript' },
      {
        name: '@hey-api/sdk',
        responseStyle: 'data',
        operations: { strategy: 'single', containerName: 'RawClient', methods: 'instance' },
      },
      { name: '@hey-api/client-fetch', throwOnError: true },
    ],
  });
  hooks.deregister();
  for (const name of await readdir(path, { recursive: true })) {
    if (!name.endsWith('.ts')) continue;
    const file = join(path, name);
    const text = await readFile(file, 'utf8');
    await writeFile(file, `// @ts-nocheck\n${openEnumerations(withoutEvents(text))}`);
  }
}

/** Drops the client of server-sent events, which the service does not send. */
function withoutEvents(text: string): string {
  const without = text
    .replace(/^import \{ createSseClient \} .*\n/m, '')
    .replace(/^ {2}const makeSseFn = [^]*?^ {2}\};\n\n/m, '')
    .replace(/^ {4}sse: \{[^]*?^ {4}\},\n/m, '');
  if (without.includes('makeSseFn')) throw new Error('the generated client has another form of server-sent events');
  return without;
}

if (import.meta.main) await generate(join(import.meta.dirname, '../src/generated'));
