// A Vite project in a sandbox, opened by its link in a real browser; edits show at once.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
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

let berth: Instance;
let client: SshClient;
let browser: Browser;

before(async () => {
  berth = await startInstance('previews-vite');
  client = await SshClient.make(berth);
  browser = await openBrowser(berth.url, berth.url);
});

after(async () => {
  await browser?.close();
  await client?.remove();
  await berth?.end();
});

test('an edit of a Vite project appears in a browser on its public link without a reload', async () => {
  const sshPublicKey = await client.makeKey('developer', 'ed25519');
  const { id } = await awakeSandbox(berth, { sshPublicKey });
  await writeFile(client.keyFile('packages.tar.gz'), await packPackages(['vite']));
  const copied = await client.run('scp', ['-q', ...client.withKey('developer'), 'packages.tar.gz', `${id}:/code/`]);
  assert.deepEqual([copied.code, copied.stderr], [0, '']);
  for (const [path, content] of Object.entries(PROJECT))
    await writeGuestFile(berth, id, `project/${path}`, Buffer.from(content));
  await runInGuest(berth, id, 'tar xzf packages.tar.gz -C project');
  await runInGuest(
    berth,
    id,
    'cd project && { setsid node node_modules/vite/bin/vite.js </dev/null >vite.log 2>&1 & }',
  );

  let said = '';
  await until(
    () => `Vite listens; its log: ${said}`,
    async () => {
      said = await runInGuest(berth, id, 'cat project/vite.log');
      return said.includes('Local:') ? true : null;
    },
    SLOW_MS,
  );
  // On the IPv6 loopback alone, as `localhost` resolves there first.
  const port = VITE_PORT.toString(16).toUpperCase();
  const listening = await runInGuest(berth, id, `grep -h ':${port} .* 0A ' /proc/net/tcp /proc/net/tcp6`);
  assert.match(listening, new RegExp(`^ *\\d+: 0{24}01000000:${port} [^\\n]*\\n?$`));
  const { url } = await publicLink(berth, id, VITE_PORT);
  const previewClient = new PreviewClient(berth, url);
  const { status, body } = await previewClient.byLink('/');
  assert.equal(status, 200, body.toString());
  previewClient.leave();

  const person = await Person.make(browser, null);
  const { page } = person;
  page.setDefaultTimeout(SLOW_MS);
  page.setDefaultNavigationTimeout(SLOW_MS);
  let loads = 0;
  page.on('load', () => (loads += 1));
  const connected = page.waitForEvent('console', (message) => message.text() === '[vite] connected.');
  await person.open(url);
  await connected;
  const shows = async (text: string): Promise<void> => page.locator('h1', { hasText: text }).waitFor();
  await shows('as it was first');
  await page.evaluate("window.marked = 'before the edits'");

  await writeGuestFile(
    berth,
    id,
    'project/src/message.ts',
    Buffer.from("export const message: string = 'as it was edited';\n"),
  );
  await shows('as it was edited');
  await writeGuestFile(berth, id, 'project/src/style.css', Buffer.from('p { color: rgb(200, 100, 50); }\n'));
  await page.waitForFunction("getComputedStyle(document.querySelector('p')).color === 'rgb(200, 100, 50)'");
  await runInGuest(berth, id, `sed -i 's/as it was edited/as a command edited it/' project/src/message.ts`);
  await shows('as a command edited it');

  assert.equal(await page.evaluate('window.marked'), 'before the edits');
  assert.equal(loads, 1);
  assert.deepEqual(person.complaints, []);
});
