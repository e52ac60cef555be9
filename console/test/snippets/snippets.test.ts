// Calls as code: each form runs as it is shown, with names that try to leave their quotes.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { ROUTES } from '@berth/contract/routes.ts';
import { Service } from '../../../cli/test/world/service.ts';
import { snippet, SNIPPET_PATHS, type Call, type CreateBody, type Language } from '../../src/rules/snippets.ts';
import { visibleLines } from '../../src/rules/visible-text.ts';
import { Shell } from './shell.ts';

const run = promisify(execFile);
const TSC = join(import.meta.dirname, '../../../node_modules/typescript/bin/tsc');
const LANGUAGES: readonly Language[] = ['curl', 'cli', 'typescript'];
const HOSTILE_NAME = '-x \'"$(touch pwned)`touch pwned`!! \\u0041 \\ %s $HOME ${1} */ </script>\u202Egnp\u200b\u2028';

let service: Service;
let shell: Shell;
before(async () => {
  service = await Service.start();
  shell = await Shell.start();
});
after(async () => {
  await service.close();
  await shell.close();
});

/** A create with everything that the form sends. */
const create = (): Call & { body: CreateBody } => ({
  route: 'createSandbox',
  path: { orgId: service.api.orgId },
  body: {
    agent: 'agent_two',
    projectId: service.api.projectId,
    machineSize: 'medium',
    name: HOSTILE_NAME,
    repository: 'acme/app',
    branch: 'main',
    endUserId: "=user '\u2066 7\t",
    persistencePolicy: 'always_on',
    sshPublicKey: `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)} me'$(touch pwned)@host`,
    metadata: { "it's": 'a=b', größe: '日本 \u202E\r', none: '', $HOME: 'line\nbreak', constructor: '${1}' },
  },
});

test('paths and methods are those of the contract', () => {
  for (const [name, path] of Object.entries(SNIPPET_PATHS)) {
    const route = ROUTES.find((one) => one.name === name);
    assert.deepEqual([route?.method, route?.path], ['POST', path]);
  }
});

test('code has no key but the given one, and no character that reorders or hides text', () => {
  const url = 'https://berth.example.test';
  for (const language of LANGUAGES) {
    const code = snippet(language, create(), { url });
    assert.equal(code, visibleLines(code), language);
    assert.doesNotMatch(code, /brt_/);
    assert.ok(code.includes(url));
    const apiKey = "brt_it's";
    const withKey = snippet(language, create(), { url, apiKey });
    assert.ok(withKey.includes(language === 'typescript' ? '"brt_it\'s"' : `'brt_it'\\''s'`), withKey);
  }
});

for (const [language, program] of [
  ['curl', 'dash'],
  ['curl', 'bash'],
  ['cli', 'dash'],
  ['cli', 'bash'],
  ['typescript', 'node'],
] as const) {
  test(`${language} pasted into ${program} creates the sandbox with its hostile name`, async () => {
    const call = create();
    const code = snippet(language, call, { url: service.api.url });
    const output = await shell.paste(language, code, { BERTH_API_KEY: service.api.token }, program);
    const id = /sbx_[a-z2-7]+/.exec(output)?.[0] ?? '';
    const row = await service.api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    const { body } = call;
    assert.deepEqual(
      [row.name, row.agent, row.project_id, row.end_user_id, row.repository, row.branch, row.persistence_policy],
      [body.name, body.agent, body.projectId, body.endUserId, body.repository, body.branch, body.persistencePolicy],
    );
    assert.deepEqual([row.ssh_public_key, row.metadata, row.allocated_vcpu], [body.sshPublicKey, body.metadata, 2]);
  });
}

test('code with a key needs no variable', async () => {
  const { orgId, projectId, url, token: apiKey } = service.api;
  const body = { agent: 'agent_one', projectId, machineSize: 'small' } as const;
  const call: Call = { route: 'createSandbox', path: { orgId }, body };
  for (const language of LANGUAGES)
    assert.match(await shell.paste(language, snippet(language, call, { url, apiKey })), /sbx_/);
});

test('the TypeScript of each call has no type errors', async () => {
  const exec: Call = { route: 'execInSandbox', path: { sandboxId: 'sbx_a' }, body: { command: 'echo "it\'s"\n' } };
  const files = await Promise.all(
    [create(), exec].map(async (call, index) => {
      const file = join(shell.folder, `checked-${index}.ts`);
      await writeFile(file, snippet('typescript', call, { url: service.api.url, apiKey: 'brt_a' }));
      return file;
    }),
  );
  const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--skipLibCheck'];
  const more = ['--target', 'es2024', '--lib', 'es2024,esnext,dom', '--allowImportingTsExtensions', '--types', ''];
  await run(process.execPath, [TSC, ...options, ...more, ...files], { cwd: shell.folder });
});
