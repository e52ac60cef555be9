// Development servers in a sandbox, with their default address and host check, opened by a link in
// a real browser; edits appear.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openBrowser, Person } from '../../api/test/pages/browser.ts';
import { awakeSandbox } from '../world/client.ts';
import { packPackages } from './guest-packages.ts';
import { startInstance, type Instance } from '../world/instance.ts';
import { runInGuest, writeGuestFile } from './app.ts';
import { PreviewClient, publicLink } from './client.ts';
import { SshClient } from '../world/ssh-client.ts';
import { until } from '../../os/test/until.ts';

/** Vite's default port. */
const VITE_PORT = 5_173;
/** Limit for one first-time operation under emulation. */
const SLOW_MS = 240_000;

/** TypeScript, so that Vite must compile it; accepts its own hot update without a page reload. */
const PROJECT = {
  'package.json': '{ "name": "previewed", "private": true, "type": "module" }',
  'index.html': `<!doctype html>
<html lang="en">
  <head><title>Previewed</title></head>
  <body><h1></h1><p>The colour of this is edited too.</p><script type="module" src="/src/main.ts"></script></body>
</html>
`,
  'src/main.ts': `import { message } from './message.ts';
import './style.css';

const heading = document.querySelector('h1') as HTMLHeadingElement;
const show = (text: string): void => { heading.textContent = text; };
show(message);
import.meta.hot?.accept('./message.ts', (changed) => { if (changed) show(changed['message'] as string); });
`,
  'src/message.ts': "export const message: string = 'as it was first';\n",
  'src/style.css': 'p { color: rgb(1, 2, 3); }\n',
} as const;

let publicKey: string;
let berth: Instance;
let client: SshClient;
let browser: Browser;

before(async () => {
  berth = await startInstance('dev-servers');
  client = await SshClient.make(berth);
  publicKey = await client.makeKey('developer', 'ed25519');
  browser = await openBrowser(berth.url, berth.url);
});

after(async () => {
  await browser?.close();
  await client?.remove();
  await berth?.end();
});

/** A sandbox with the project, and `packages.tar.gz` of the client unpacked in it. */
async function sandboxWith(files: Readonly<Record<string, string>>): Promise<string> {
  const { id } = await awakeSandbox(berth, { sshPublicKey: publicKey });
  const copied = await client.run('scp', ['-q', ...client.withKey('developer'), 'packages.tar.gz', `${id}:/code/`]);
  assert.deepEqual([copied.code, copied.stderr], [0, '']);
  for (const [path, content] of Object.entries(files))
    await writeGuestFile(berth, id, `project/${path}`, Buffer.from(content));
  await runInGuest(berth, id, 'tar xzf packages.tar.gz -C project && rm packages.tar.gz');
  return id;
}

/** Starts the server in the project; resolves when its log contains `ready`. */
async function startServer(sandboxId: string, command: string, ready: string): Promise<void> {
  await runInGuest(berth, sandboxId, `cd project && { setsid ${command} </dev/null >server.log 2>&1 & }`);
  let said = '';
  await until(
    () => `'${command}' listens; its log: ${said}`,
    async () => {
      said = await runInGuest(berth, sandboxId, 'cat project/server.log');
      return said.includes(ready) ? true : null;
    },
    SLOW_MS,
  );
}

async function patientPerson(): Promise<Person> {
  const person = await Person.make(browser, null);
  person.page.setDefaultTimeout(SLOW_MS);
  person.page.setDefaultNavigationTimeout(SLOW_MS);
  return person;
}

async function shows(page: Page, text: string): Promise<void> {
  await page.locator('h1', { hasText: text }).waitFor();
}

/** Replaces the text in the file. */
async function edit(sandboxId: string, file: string, from: string, to: string): Promise<void> {
  await runInGuest(berth, sandboxId, `grep -q '${from}' project/${file} && sed -i 's/${from}/${to}/' project/${file}`);
}

test('an edit of a Vite project appears in a browser on its public link without a reload', async () => {
  await writeFile(client.keyFile('packages.tar.gz'), await packPackages(['vite']));
  const id = await sandboxWith(PROJECT);
  await startServer(id, 'node node_modules/vite/bin/vite.js', 'Local:');
  // On the IPv6 loopback alone, as `localhost` resolves there first.
  const port = VITE_PORT.toString(16).toUpperCase();
  const listening = await runInGuest(berth, id, `grep -h ':${port} .* 0A ' /proc/net/tcp /proc/net/tcp6`);
  assert.match(listening, new RegExp(`^ *\\d+: 0{24}01000000:${port} [^\\n]*\\n?$`));
  const { url } = await publicLink(berth, id, VITE_PORT);
  const previewClient = new PreviewClient(berth, url);
  const { status, body } = await previewClient.byLink('/');
  assert.equal(status, 200, body.toString());
  previewClient.leave();

  const person = await patientPerson();
  const { page } = person;
  let loads = 0;
  page.on('load', () => (loads += 1));
  const connected = page.waitForEvent('console', (message) => message.text() === '[vite] connected.');
  await person.open(url);
  await connected;
  await shows(page, 'as it was first');
  await page.evaluate("window.marked = 'before the edits'");

  await writeGuestFile(
    berth,
    id,
    'project/src/message.ts',
    Buffer.from("export const message: string = 'as it was edited';\n"),
  );
  await shows(page, 'as it was edited');
  await writeGuestFile(berth, id, 'project/src/style.css', Buffer.from('p { color: rgb(200, 100, 50); }\n'));
  await page.waitForFunction("getComputedStyle(document.querySelector('p')).color === 'rgb(200, 100, 50)'");
  await runInGuest(berth, id, `sed -i 's/as it was edited/as a command edited it/' project/src/message.ts`);
  await shows(page, 'as a command edited it');

  assert.equal(await page.evaluate('window.marked'), 'before the edits');
  assert.equal(loads, 1);
  assert.deepEqual(person.complaints, []);
});

test('a page of python3 -m http.server opens in a browser, and its edit after a reload', async () => {
  const { id } = await awakeSandbox(berth);
  await writeGuestFile(berth, id, 'project/index.html', Buffer.from('<title>Plain</title><h1>as it was first</h1>'));
  await startServer(id, 'python3 -u -m http.server 8000', 'Serving HTTP');
  const person = await patientPerson();
  const { page } = person;
  await person.open((await publicLink(berth, id, 8_000)).url);
  await shows(page, 'as it was first');
  await edit(id, 'index.html', 'as it was first', 'as it was edited');
  await page.reload();
  await shows(page, 'as it was edited');
  assert.deepEqual(person.complaints, []);
});
