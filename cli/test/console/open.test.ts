// `berth open` against a real service, with a fake browser opener.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { exampleSandbox } from '@berth/contract/route/examples.ts';
import { until } from '../../../os/test/until.ts';
import { ApiServer } from '../world/api-server.ts';
import { berth, type Ended } from '../world/berth.ts';

const SANDBOX = 'sbx_uodiunxlni4uyqmllemsqh4l';
const SESSION = 'ags_uodiunxlni4uyqmllemsqh4l';
const SERVICE = {
  version: '1',
  publicUrl: 'https://berth.example.test',
  previewUrl: 'https://previews.example.test',
  agents: [],
  features: { console: true, payments: false, openSignUp: false, modelEndpoints: [] },
};

let api: ApiServer;
let folder: string;
before(async () => {
  api = await ApiServer.start();
  api.json = () => SERVICE;
  folder = mkdtempSync(join(tmpdir(), 'berth-open-'));
  writeFileSync(
    join(folder, 'xdg-open'),
    `#!/bin/sh\necho "$@" > '${folder}/new' && mv '${folder}/new' '${folder}/opened'\n`,
  );
  chmodSync(join(folder, 'xdg-open'), 0o755);
});
after(() => {
  api.close();
  rmSync(folder, { recursive: true });
});

const open = (...words: string[]): Promise<Ended> => berth(['open', ...words], { env: api.environment });

test('without a browser the address is printed, for the org, its pages, sandboxes and sessions', async () => {
  const at = (path: string): string => `${SERVICE.publicUrl}/console${path}\n`;
  for (const [words, path] of [
    [['--org', 'org_a'], '/orgs/org_a'],
    [['org_b', '--page', 'billing'], '/orgs/org_b/subscription'],
    [[SANDBOX], `/sandboxes/${SANDBOX}`],
    [[SANDBOX, '--page', 'terminal'], `/sandboxes/${SANDBOX}/terminal`],
    [[SESSION], `/agent-sessions/${SESSION}`],
  ] as const) {
    const { code, stdout, stderr } = await open(...words);
    assert.deepEqual([code, stdout, stderr], [0, at(path), '']);
  }
  const { stdout } = await open(SANDBOX, '--json');
  assert.deepEqual(JSON.parse(stdout), { url: at(`/sandboxes/${SANDBOX}`).trim() });
});

test('with a browser the address is opened, unless it is no web address', async () => {
  const env = { ...api.environment, DISPLAY: ':99', PATH: `${folder}:${process.env['PATH']}` };
  const { code, stdout, stderr } = await berth(['open', SANDBOX, '--page', 'files'], { env });
  const url = `${SERVICE.publicUrl}/console/sandboxes/${SANDBOX}/files`;
  assert.deepEqual([code, stdout, stderr], [0, '', `opened ${url}\n`]);
  const opened = (): Promise<string | null> => {
    try {
      return Promise.resolve(readFileSync(join(folder, 'opened'), 'utf8').trim());
    } catch {
      return Promise.resolve(null);
    }
  };
  assert.equal(await until('it is opened', opened), url);
  rmSync(join(folder, 'opened'));
  api.json = () => ({ ...SERVICE, publicUrl: 'file:///etc' });
  assert.equal((await berth(['open', SANDBOX], { env })).code, 0);
  assert.equal(await opened(), null);
  api.json = () => SERVICE;
});

test('a name that looks like an id is that of a sandbox', async () => {
  const found = { ...exampleSandbox, id: SANDBOX, name: 'web_one' };
  api.json = ({ url = '' }) => (url.includes('/sandboxes?') ? { sandboxes: [found], total: 1 } : SERVICE);
  const stdout = `${SERVICE.publicUrl}/console/sandboxes/${SANDBOX}\n`;
  assert.deepEqual(await open('web_one', '--org', 'org_a'), { code: 0, stdout, stderr: '' });
  api.json = () => SERVICE;
});

test('a wrong id or page is refused with what is allowed, and so is a service without a console', async () => {
  for (const [words, message] of [
    [['prj_a'], /'prj_a' is no id of a sandbox, agent session or org\n {2}they start with sbx_, ags_ or org_/],
    [[SANDBOX, '--page', 'usage'], /--page usage is no page of the sandbox; allowed: terminal, files, /],
    [['--page', 'terminal', '--org', 'org_a'], /--page terminal is no page of the org; allowed: sandboxes, /],
    [[SESSION, '--page', 'files'], /--page files is no page of the agent session; it has none/],
    [[SANDBOX, '--page', 'nope'], /Allowed choices are terminal, /],
    [['ags_../admin'], /invalid agent session id 'ags_\.\.\/admin'/],
  ] as const) {
    const { code, stdout, stderr } = await open(...words);
    assert.deepEqual([code, stdout], [2, ''], words.join(' '));
    assert.match(stderr, message);
  }
  api.json = () => ({ ...SERVICE, features: { ...SERVICE.features, console: false } });
  const { code, stderr } = await open(SANDBOX);
  assert.deepEqual([code, /the service has no web console/.test(stderr)], [1, true], stderr);
  api.json = () => SERVICE;
});
