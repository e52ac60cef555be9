// `berth files link` against a real service with a scripted host.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ExecRefusal } from '../../../api/test/world/guests/exec-refusal.ts';
import { Service } from '../world/service.ts';

let service: Service;
let id: string;
before(async () => {
  service = await Service.start({ durable: false });
  ({ id } = await service.api.makeSandbox('ready'));
});
after(() => service.close());

/** The printed URL, at the address that listens. */
function at(stdout: string): string {
  const token = /\/file-links\/([\w-]+)\n$/.exec(stdout)?.[1];
  assert.ok(token !== undefined, stdout);
  return `${service.api.url}/file-links/${service.api.secret(token, 'the token of a file link')}`;
}

test('link prints a URL alone that downloads the file, and what it grants to stderr', async () => {
  const made = await service.run(['files', 'link', id, 'a', '--expires-in', '2h', '--name', 'b.txt']);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stderr, /anyone with the link can download \/code\/a until /);
  const response = await fetch(at(made.stdout));
  assert.deepEqual([response.status, await response.text()], [200, 'a content']);
  assert.equal(response.headers.get('content-disposition'), 'attachment; filename="b.txt"');
});

test('link to a missing file warns, to a folder fails, and neither is checked while asleep', async () => {
  const { files } = service.api.front;
  try {
    service.api.front.files = () => Promise.reject(new ExecRefusal('file_not_found', 'none'));
    const missing = await service.run(['files', 'link', id, 'later']);
    assert.equal(missing.code, 0, missing.stderr);
    at(missing.stdout);
    assert.match(missing.stderr, /^berth: later does not exist yet in sbx_\w+\n/);
    assert.doesNotMatch((await service.run(['files', 'link', id, 'later', '--write'])).stderr, /does not exist/);

    service.api.front.files = () => ({ kind: 'directory', size: 0, mtimeSeconds: 1, mode: '0755' });
    const folder = await service.run(['files', 'link', id, 'src']);
    assert.deepEqual([folder.code, folder.stdout], [1, '']);
    assert.match(
      folder.stderr,
      /^berth: src is a folder: a link is to one file\n {2}berth cp sbx_\w+:src \. copies a folder\n$/,
    );
    const asleep = await service.api.makeSandbox('stopped');
    assert.equal((await service.run(['files', 'link', asleep.id, 'src'])).code, 0);
  } finally {
    service.api.front.files = files;
  }
});

test('link --write prints a URL that uploads within its limits', async () => {
  const options = ['--write', '--max-bytes', '3', '--no-overwrite', '--json'];
  const made = await service.run(['files', 'link', id, 'in/b', ...options]);
  assert.equal(made.code, 0, made.stderr);
  const { link } = JSON.parse(made.stdout);
  assert.deepEqual([link.action, link.method, link.path], ['write', 'PUT', '/code/in/b']);
  const url = at(`${link.url}\n`);
  const long = await fetch(url, { method: 'PUT', body: 'four' });
  const fits = await fetch(url, { method: 'PUT', body: 'abc' });
  assert.deepEqual([long.status, fits.status], [413, 200]);
});

test('options of the other action, and a lifetime out of bounds, are usage errors', async () => {
  for (const [options, words] of [
    [['--max-bytes', '3'], /--max-bytes and --no-overwrite limit uploads/],
    [['--no-overwrite'], /--max-bytes and --no-overwrite limit uploads/],
    [['--write', '--name', 'a'], /--name is of a download/],
    [['--expires-in', '30'], /from 60 s to 86400 s/],
    [['--write', '--max-bytes', '1.5'], /whole number/],
  ] as const) {
    const { code, stdout, stderr } = await service.run(['files', 'link', id, 'a', ...options]);
    assert.deepEqual([code, stdout], [2, ''], stderr);
    assert.match(stderr, words);
  }
});
