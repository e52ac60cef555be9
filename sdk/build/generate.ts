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
    const trim = TRIMMED[name] ?? ((whole) => whole);
    await writeFile(file, `// @ts-nocheck\n${openEnumerations(trim(text))}`);
  }
}

/**
 * Drops from the generated runtime: server-sent events, which the service does not send;
 * credentials, which the transport adds; serializers, which the client brings; and all styles of
 * paths but the one of the API.
 */
const TRIMMED: Readonly<Record<string, (text: string) => string>> = {
  'client/client.gen.ts': (text) =>
    replaced(text, [
      [/^import \{ createSseClient \} .*\n/m, ''],
      [/^ {2}const makeSseFn = [^]*?^ {2}\};\n\n/m, ''],
      [/^ {4}sse: \{[^]*?^ {4}\},\n/m, ''],
      [/^ {2}setAuthParams,\n/m, ''],
      [/^ {4}if \(opts\.security\) \{[^]*?^ {4}\}\n\n/m, ''],
    ]),
  'client/utils.gen.ts': (text) =>
    replaced(text, [
      [/^ {6}typeof options\.querySerializer === 'function'\n[^]*?(?=,\n {4}url:)/m, '      options.querySerializer'],
      [/^const defaultQuerySerializer = createQuerySerializer\([^]*?^\}\);\n\n/m, ''],
      [/^ {2}querySerializer: defaultQuerySerializer,\n/m, ''],
      [/^ {2}\.\.\.jsonBodySerializer,\n/m, ''],
    ]),
  'core/utils.gen.ts': (text) =>
    replaced(text, [
      [
        /(?<=^export const defaultPathSerializer = .* =>) \{$[^]*?^\};/m,
        '\n  url.replace(PATH_PARAM_RE, (name) => encodeURIComponent(path[name.slice(1, -1)] ?? name));',
      ],
      [/(?<=^export const defaultPathSerializer = .*)url: _url/m, 'url'],
    ]),
};

function replaced(text: string, changes: readonly (readonly [RegExp, string])[]): string {
  return changes.reduce((before, [part, replacement]) => {
    if (!part.test(before)) throw new Error(`the generated client has no ${String(part)}`);
    return before.replace(part, replacement);
  }, text);
}

if (import.meta.main) await generate(join(import.meta.dirname, '../src/generated'));
