// A call of the API as code: curl and the CLI for any POSIX shell, and TypeScript. Tenants choose
// names in it: none leaves its quotes, and characters that reorder or hide text are escaped.
import type { api } from '@berth/sdk';
import { codeOf, replaceDeceptive } from './visible-text.ts';

type Create = api.CreateSandboxData['body'];

/** Options of the CLI by field. */
const CREATE_OPTIONS = {
  projectId: '--project',
  name: '--name',
  agent: '--agent',
  machineSize: '--size',
  repository: '--repository',
  branch: '--branch',
  endUserId: '--end-user',
  persistencePolicy: '--persistence-policy',
} as const satisfies Partial<Record<keyof Create, string>>;

type Field = keyof typeof CREATE_OPTIONS;

/** A create request with values that options of the CLI can have. */
export type CreateBody = {
  [Name in keyof Pick<Create, Field | 'metadata' | 'sshPublicKey'>]: Exclude<Create[Name], null>;
};

export type Call =
  | { route: 'createSandbox'; path: { orgId: string }; body: CreateBody }
  | { route: 'execInSandbox'; path: { sandboxId: string }; body: { command: string } };

export const SNIPPET_PATHS: Readonly<Record<Call['route'], string>> = {
  createSandbox: '/v1/orgs/{orgId}/sandboxes',
  execInSandbox: '/v1/sandboxes/{sandboxId}/exec',
};

export interface Service {
  url: string;
  /** A key that the person has just made; without one, code reads it from BERTH_API_KEY. */
  apiKey?: string | undefined;
}

export type Language = 'curl' | 'cli' | 'typescript';

/** The call in a language, complete: it runs when it is pasted. */
export function snippet(language: Language, call: Call, service: Service): string {
  if (language === 'typescript') return typescript(call, service);
  const line = language === 'curl' ? curl(call, service) : cli(call, service);
  return service.apiKey === undefined ? line : `export BERTH_API_KEY=${word(service.apiKey)}\n${line}`;
}

const CONTINUED = ' \\\n  ';

function curl({ route, path, body }: Call, { url }: Service): string {
  const ids = new Map<string, string>(Object.entries(path));
  const called = SNIPPET_PATHS[route].replace(/\{(\w+)\}/, (_, name: string) =>
    encodeURIComponent(ids.get(name) ?? ''),
  );
  return [
    `curl -X POST ${word(url + called)}`,
    // Stays a variable: one line of a history must not have key and call.
    '-H "Authorization: Bearer $BERTH_API_KEY"',
    "-H 'Content-Type: application/json'",
    `-d ${word(literal(body))}`,
  ].join(CONTINUED);
}

function cli({ route, path, body }: Call, { url }: Service): string {
  const at = `--url ${word(url)}`;
  if (route === 'execInSandbox') return `berth exec ${at} ${word(path.sandboxId)} -- ${word(body.command)}`;
  const { metadata = {}, sshPublicKey, ...fields } = body;
  const given = Object.entries(fields).map(([field, value]) => [CREATE_OPTIONS[field as Field], value]);
  const labels = Object.entries(metadata).map(([key, value]) => ['--metadata', `${key}=${String(value)}`]);
  const options = [...given, ...labels].map(([name = '', value = '']) => `${name} ${word(value)}`);
  const key = sshPublicKey === undefined ? { input: '', options: [] } : keyOf(sshPublicKey);
  const first = `${key.input}berth sandbox create ${at} --org ${word(path.orgId)}`;
  return [first, ...options, ...key.options].join(CONTINUED);
}

/** The CLI reads a key from a file alone. */
const keyOf = (line: string) => ({ input: `printf '%s\\n' ${word(line)} | `, options: ['--ssh-key /dev/stdin'] });

function typescript({ route, path, body }: Call, { url, apiKey }: Service): string {
  const client = [
    "import { Berth } from '@berth/sdk';",
    '',
    `const berth = new Berth(${source({ url, ...(apiKey === undefined ? {} : { apiKey }) })});`,
  ];
  if (route === 'createSandbox') {
    const create = `await berth.sandboxes.create(${source(body)}, ${source(path)})`;
    return [...client, `const sandbox = ${create};`, 'console.log(sandbox.id);'].join('\n');
  }
  return [
    ...client,
    `const sandbox = await berth.sandboxes.get(${literal(path.sandboxId)});`,
    `const { stdout } = await sandbox.exec(${literal(body.command)}).orThrow();`,
    'console.log(stdout);',
  ].join('\n');
}

/** A value as JSON, which is also JavaScript. */
const literal = (value: unknown): string =>
  replaceDeceptive(JSON.stringify(value), (character) => `\\u${codeOf(character)}`);

/** An object as a JavaScript expression. */
function source(value: object, indent = ''): string {
  const inner = `${indent}  `;
  const fields = Object.entries(value).map(([key, one]: [string, unknown]) => {
    const name = /^[A-Za-z]\w*$/.test(key) ? key : literal(key);
    return `${inner}${name}: ${typeof one === 'object' && one !== null ? source(one, inner) : literal(one)},\n`;
  });
  return `{\n${fields.join('')}${indent}}`;
}

/** A word of a POSIX shell. Characters that deceive are printed by their bytes. */
function word(text: string): string {
  if (/^[\w./:@%+,-]+$/.test(text)) return text;
  const shown = replaceDeceptive(text.replaceAll("'", String.raw`'\''`), (character) =>
    character === '\n' || character === '\t' ? character : `'"$(printf '${octal(character)}')"'`,
  );
  return `'${shown}'`;
}

const octal = (text: string): string =>
  [...new TextEncoder().encode(text)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
