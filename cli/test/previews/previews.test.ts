// `berth preview` against a real service, with a fake browser opener.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Preview } from '@berth/contract/previews/previews.ts';
import { until } from '../../../os/test/until.ts';
import { ApiServer } from '../world/api-server.ts';
import { berth } from '../world/berth.ts';
import { Service } from '../world/service.ts';

let service: Service;
let folder: string;
let id: string;
before(async () => {
  service = await Service.start({ durable: false });
  ({ id } = await service.api.makeSandbox('ready'));
  folder = mkdtempSync(join(tmpdir(), 'berth-browser-'));
  writeFileSync(
    join(folder, 'xdg-open'),
    `#!/bin/sh\necho "$@" > '${folder}/new' && mv '${folder}/new' '${folder}/opened'\n`,
  );
  chmodSync(join(folder, 'xdg-open'), 0o755);
});
after(async () => {
  await service.close();
  rmSync(folder, { recursive: true });
});

const list = async (): Promise<Preview[]> =>
  ((await service.body(`/v1/sandboxes/${id}/previews`)) as { previews: Preview[] }).previews;

test('create prints only the URL on stdout, with the requested audience, label, user and lifetime', async () => {
  const options = [
    '--audience',
    'public',
    '--expires-in',
    '7d',
    '--label',
    'demo',
    '--end-user',
    'u 1',
    '--embeddable',
  ];
  const { code, stdout, stderr } = await service.run(['preview', 'create', id, '3000', ...options]);
  assert.equal(code, 0, stderr);
  const [link] = await list();
  assert.equal(stdout, `${link?.url}\n`);
  assert.deepEqual([link?.port, link?.audience, link?.label, link?.endUserId], [3_000, 'public', 'demo', 'u 1']);
  assert.equal(link?.embeddable, true);
  assert.equal(Date.parse(link?.expiresAt ?? '') - Date.parse(link?.createdAt ?? ''), 7 * 86_400_000);
  assert.match(
    stderr,
    new RegExp(
      '^anyone with the link can open it, until \\S+Z \\(in [67] d\\); ' +
        `revoke it with berth preview rm ${id} ${link?.id}$`,
      'm',
    ),
  );
  const team = await service.run(['preview', 'create', id, '8080', '--json']);
  const { preview } = JSON.parse(team.stdout) as { preview: Preview };
  assert.deepEqual([preview.audience, preview.port, preview.id], ['team', 8_080, null]);
  assert.equal((await list()).length, 1, 'a team link is not stored');
});

test('ls fits its terminal and drops URLs that do not fit; a pipe and --json have them', async () => {
  const [narrow, piped, json, none] = await Promise.all([
    service.show(['preview', 'ls', id], { columns: 60, env: { NO_COLOR: '1' } }),
    service.run(['preview', 'ls', id]),
    service.run(['preview', 'ls', id, '--json']),
    service.run(['preview', 'ls', (await service.api.makeSandbox('ready')).id]),
  ]);
  assert.match(
    narrow.text,
    /^ID +PORT {2}(?:\S+ )*.*EXPIRES.*\nprv_[a-z2-7]{24} {2}3000 .*\nopen one with berth preview open SANDBOX ID; --json prints the URLs\n$/,
  );
  assert.doesNotMatch(narrow.text, /token=/);
  for (const line of narrow.text.split('\n').slice(0, 2)) assert.ok(line.length <= 60, line);
  assert.match(
    piped.stdout,
    /^ID +PORT +LABEL +END USER +EXPIRES +LAST USED +URL\nprv_\w+ +3000 +demo +u 1 +in [67] d +- +http\S+token=\S+\n$/,
  );
  assert.deepEqual(JSON.parse(json.stdout), await service.body(`/v1/sandboxes/${id}/previews`));
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, '', 'no public links (team links are not stored)\n']);
});

test('rm revokes all named links, repeatedly, and names missing ones', async () => {
  await service.run(['preview', 'create', id, '3001', '--audience', 'public']);
  const [newer = '', older = ''] = (await list()).map((link) => link.id ?? '');
  const { code, stdout, stderr } = await service.run(['preview', 'rm', id, older, 'prv_nope', newer]);
  assert.deepEqual([code, stdout], [1, `${older} revoked\n${newer} revoked\n`]);
  assert.match(stderr, /^berth: prv_nope: .+ \(preview_link_not_found\)$/m);
  assert.deepEqual(await list(), []);
  const again = await service.run(['preview', 'rm', id, newer]);
  assert.deepEqual([again.code, again.stdout], [0, `${newer} revoked\n`]);
});

test('open passes a link to the browser, or prints it without one', async () => {
  const screen = { DISPLAY: ':99', PATH: `${folder}:${process.env['PATH']}` };
  const opened = async (): Promise<string> => {
    return await until('it is opened', () => {
      try {
        return Promise.resolve(readFileSync(join(folder, 'opened'), 'utf8').trim());
      } catch {
        return Promise.resolve(null);
      } finally {
        rmSync(join(folder, 'opened'), { force: true });
      }
    });
  };
  const seen = await service.run(['preview', 'open', id, '3000'], { env: screen });
  assert.deepEqual([seen.code, seen.stdout], [0, '']);
  const url = await opened();
  assert.match(url, /^http:\/\/3000-[a-z2-7]{24}\.previews\.example\.test\/\?token=bpt_team\.\S+$/);
  assert.equal(seen.stderr, `opened ${url}\n`);
  await service.run(['preview', 'create', id, '3002', '--audience', 'public']);
  const [link] = await list();
  await service.run(['preview', 'open', id, link?.id ?? ''], { env: screen });
  assert.equal(await opened(), link?.url);
  const printed = await service.run(['preview', 'open', id, link?.id ?? '']);
  assert.deepEqual([printed.code, printed.stdout, printed.stderr], [0, `${link?.url}\n`, '']);
  const gone = await service.run(['preview', 'open', id, 'prv_nope']);
  assert.deepEqual([gone.code, gone.stdout], [1, '']);
  assert.match(gone.stderr, /no active link prv_nope to sbx_\w+\n/);
});

test('ls and open say why a link does not open', async () => {
  const { id: own } = await service.api.makeSandbox('ready');
  await service.run(['preview', 'create', own, '3000', '--audience', 'public']);
  const made = (await service.body(`/v1/sandboxes/${own}/previews`)) as { previews: Preview[] };
  const link = made.previews[0]?.id ?? '';
  await service.api.db.updateTable('preview_link').set({ api_key_id: 'key_gone' }).where('id', '=', link).execute();
  const listed = await service.run(['preview', 'ls', own]);
  assert.match(listed.stdout, /^ID +.*INACTIVE +URL\n.* its API key was revoked +-\n$/);
  const opened = await service.run(['preview', 'open', own, link]);
  assert.deepEqual([opened.code, opened.stdout], [1, '']);
  assert.match(opened.stderr, /the link does not open: its API key was revoked\n/);
  assert.match(opened.stderr, new RegExp(`create another with berth preview create ${own} 3000 --audience public`));
});

test('a URL that is not a web page is never passed to a program', async (t) => {
  const api = await ApiServer.start();
  t.after(() => api.close());
  for (const url of ['file:///etc/passwd', '-x', 'javascript:alert(1)']) {
    api.json = (request) =>
      request.method === 'POST' ? { preview: { url, expiresAt: '' } } : { sandbox: { id: 'sbx_a' } };
    const env = { ...api.environment, DISPLAY: ':99', PATH: `${folder}:${process.env['PATH']}` };
    const { code } = await berth(['preview', 'open', `sbx_${'a'.repeat(24)}`, '80'], { env });
    assert.equal(code, 0, 'it is printed');
    assert.throws(() => readFileSync(join(folder, 'opened')), /ENOENT/);
  }
});

test('invalid arguments are refused with exit code 2 and the allowed values', async () => {
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['create', id], /missing required argument 'port'/],
    [['create', id, '0'], /invalid port '0': It must be a whole number from 1 to 65535/],
    [['create', id, 'http'], /invalid port 'http'/],
    [['create', id, '80', '--audience', 'all'], /Allowed choices are team, public/],
    [['create', id, '80', '--expires-in', '31d'], /from 1 s to 2592000 s \(30 d\)/],
    [['create', id, '80', '--label', ''], /1 to 100 characters/],
    [['rm', id], /missing required argument 'links'/],
    [['rm', id, '../x'], /invalid link id '\.\.\/x'/],
    [['open', id, '70000'], /invalid port '70000'/],
    [['lst', id], /unknown command 'lst'[^]*Did you mean ls/],
  ];
  await Promise.all(
    cases.map(async ([words, expected]) => {
      const { code, stdout, stderr } = await service.run(['preview', ...words]);
      assert.deepEqual([code, stdout], [2, ''], `${words.join(' ')}: ${stderr}`);
      assert.match(stderr, expected);
    }),
  );
});
