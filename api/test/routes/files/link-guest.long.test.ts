// File links with a real guest daemon: links of the file system, special files, a wake, and a crash
// of the API in the middle of a transfer.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import type { FileLink } from '@berth/contract/files/links.ts';
import { FakeInstallation } from '../../fake-installation.ts';
import { at as urlAt, tokenOf, use as request, type Used } from './link-world.ts';

let installation: FakeInstallation;
let id: string;
/** Folder of the files, as the guest daemon names it. */
let folder: string;
before(async () => {
  installation = await FakeInstallation.start({});
  const projectId = await installation.makeProject({ name: 'links', wakeOnUse: true });
  ({ id } = await installation.create({ projectId, machineSize: 'small' }));
  folder = (await installation.exec(id, 'pwd')).stdout.trim();
});
after(() => installation.stop());

async function make(path: string, action: 'read' | 'write', more: object = {}): Promise<FileLink> {
  const made = await installation.call('POST', `/v1/sandboxes/${id}/files/links`, { path, action, ...more });
  return made['link'] as FileLink;
}
const use = async (link: FileLink, init: RequestInit = {}): Promise<Used> =>
  await request({ ...link, url: urlAt(installation.url, link) }, init);
const read = async (path: string): Promise<Used> => await use(await make(`${folder}/${path}`, 'read'));

test('a link follows links of the file system as the user of the sandbox does, and never leaves it', async () => {
  await installation.exec(id, `printf inside > target && ln -s target there && ln -s loop loop && ln -s /nothing gone`);
  await installation.exec(id, 'mkdir -p dir/sub && mkfifo pipe && printf "%1000d" 1 > long');
  assert.equal((await read('there')).text, 'inside');
  assert.equal((await read('long')).text.length, 1_000);
  for (const [path, code] of [
    ['missing', 'file_not_found'],
    ['gone', 'file_not_found'],
    ['dir', 'not_a_file'],
    ['pipe', 'not_a_file'],
    ['loop', 'file_path_invalid'],
    ['target/x', 'not_a_directory'],
  ] as const) {
    const answer = await read(path);
    assert.equal(answer.code, code, path);
    assert.ok(answer.message?.includes(JSON.stringify(`${folder}/${path}`)), answer.message);
  }
  const through = await use(await make(`${folder}/there`, 'write'), { body: 'changed' });
  assert.equal(through.status, 200);
  assert.equal((await installation.exec(id, 'cat target && readlink there')).stdout, 'changedtarget\n');
});

test('a link that may not overwrite writes once, into folders that it creates', async () => {
  const link = await make(`${folder}/new/folder/a`, 'write', { overwrite: false });
  assert.equal((await use(link, { body: 'first' })).status, 200);
  const second = await use(link, { body: 'second' });
  assert.deepEqual([second.status, second.code], [409, 'file_exists']);
  assert.equal((await installation.exec(id, 'cat new/folder/a')).stdout, 'first');
});

test('an upload that breaks off, by its sender or a crash of the API, leaves the former content', async () => {
  const link = await make(`${folder}/kept`, 'write');
  await use(link, { body: 'former' });
  for (const end of ['sender', 'api'] as const) {
    const options = { method: 'PUT', headers: { 'content-length': '1000000' }, agent: false };
    const upload = http.request(urlAt(installation.url, link), options);
    const broken = new Promise((resolve) => upload.once('close', resolve));
    upload.on('error', () => undefined).write(Buffer.alloc(500_000));
    // The other place of the sandbox: a download is served beside the upload.
    assert.equal((await read('kept')).text, 'former');
    if (end === 'api') await installation.end('api');
    else upload.destroy();
    await broken;
    if (end === 'api') await installation.run('api');
    assert.equal((await read('kept')).text, 'former');
  }
  // The link is not stored: it survives the crash.
  assert.equal((await use(link, { body: 'after' })).status, 200);
});

test('a use wakes a sandbox whose project has wakeOnUse, and the feed names the link', async () => {
  await installation.exec(id, 'printf awake > woken');
  await installation.call('POST', `/v1/sandboxes/${id}/sleep`);
  await installation.until(id, ({ status }) => status === 'stopped');
  const link = await make(`${folder}/woken`, 'read');
  assert.equal((await use(link)).text, 'awake');
  const { activity } = await installation.call('GET', `/v1/orgs/${installation.orgId}/activity?sandboxId=${id}`);
  const wakes = (activity as { kind: string; actor: { kind: string; id: string } }[]).filter(
    ({ kind }) => kind === 'sandbox_wake_requested',
  );
  assert.deepEqual(
    wakes.map(({ actor }) => [actor.kind, actor.id]),
    [['file_link', link.id]],
  );
});

test('no log line of any process holds a token', async () => {
  const link = await make(`${folder}/missing`, 'read');
  await use(link);
  assert.ok(installation.log.includes('/file-links/:token'), 'uses are in the log');
  assert.ok(!installation.log.includes(tokenOf(link)));
});
