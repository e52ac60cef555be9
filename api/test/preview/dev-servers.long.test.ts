// Development servers of Next and Astro in a sandbox, with their default address and origin check,
// opened by a link in a real browser; edits appear. The fake driver runs them at the host's speed:
// a first compilation takes minutes on an emulated CPU. e2e/previews/dev-servers.long.test.ts has
// Vite and Python on emulated VMs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { until } from '../../../os/test/until.ts';
import { FakeInstallation } from '../fake-installation.ts';
import { openBrowser, Person } from '../pages/browser.ts';
import { copyPackages } from './dev-servers/packages.ts';

/** Limit for one operation on a loaded machine. */
const SLOW_MS = 120_000;
const PREVIEW_URL = 'http://localhost:4900';

interface Framework {
  port: number;
  /** Runs in the project's folder. */
  command: string;
  /** Printed once the server listens. */
  ready: string;
  files: Readonly<Record<string, string>>;
}

const NEXT: Framework = {
  port: 3_000,
  command: 'NEXT_TELEMETRY_DISABLED=1 /node node_modules/next/dist/bin/next dev',
  ready: 'Ready in',
  files: {
    'package.json': '{ "name": "next-app", "private": true }',
    'next.config.mjs': "export default { turbopack: { root: '/code/project' } };\n",
    'app/layout.jsx': `export default ({ children }) => (
  <html lang="en"><head><title>Previewed</title></head><body>{children}</body></html>
);
`,
    'app/page.jsx': `import Counter from './counter.jsx';
export default () => <main><h1>as it was first</h1><Counter /></main>;
`,
    'app/counter.jsx': `'use client';
import { useState } from 'react';
const Counter = () => {
  const [count, setCount] = useState(0);
  return <button onClick={() => setCount(count + 1)}>count {count}</button>;
};
export default Counter;
`,
  },
};

const ASTRO: Framework = {
  port: 4_321,
  command: 'ASTRO_TELEMETRY_DISABLED=1 /node node_modules/astro/bin/astro.mjs dev',
  ready: 'watching for file changes',
  files: {
    'package.json': '{ "name": "astro-app", "private": true, "type": "module" }',
    'src/components/Heading.astro': '<h1>as it was first</h1>\n',
    'src/styles/page.css': 'p { color: rgb(1, 2, 3); }\n',
    'src/pages/index.astro': `---
import Heading from '../components/Heading.astro';
import '../styles/page.css';
---
<html lang="en"><head><title>Previewed</title></head><body><Heading /><p>text</p></body></html>
`,
  },
};

let berth: FakeInstallation;
let browser: Browser;
let projectId: string;
before(async () => {
  berth = await FakeInstallation.start({ BERTH_PREVIEW_URL: PREVIEW_URL });
  projectId = await berth.makeProject({ name: 'previews' });
  browser = await openBrowser(PREVIEW_URL, berth.url, [`*.${new URL(PREVIEW_URL).host}`]);
});
after(async () => {
  await browser?.close();
  await berth?.stop();
});

/** Starts the server in a new sandbox; returns a public link to it. */
async function serve({ files, command, port, ready }: Framework): Promise<{ id: string; url: string }> {
  const { id } = await berth.create({ projectId });
  await berth.until(id, ({ status }) => status === 'ready');
  await berth.exec(id, 'mkdir project');
  await copyPackages(berth.folder, id, 'project');
  for (const [path, content] of Object.entries(files))
    await berth.call('PUT', `/v1/sandboxes/${id}/file`, { path: `project/${path}`, content });
  await berth.exec(id, `cd project && { setsid sh -c '${command}' </dev/null >server.log 2>&1 & }`);
  let said = '';
  await until(
    () => `'${command}' listens; its log: ${said}`,
    async () => {
      said = (await berth.exec(id, 'cat project/server.log')).stdout;
      return said.includes(ready) ? true : null;
    },
    SLOW_MS,
  );
  const { preview } = await berth.call('POST', `/v1/sandboxes/${id}/previews`, { port, audience: 'public' });
  return { id, url: (preview as { url: string }).url };
}

/** Opens the link; the document's `marked` is lost by a reload. */
async function visit(url: string): Promise<Person> {
  const person = await Person.make(browser, null);
  person.page.setDefaultTimeout(SLOW_MS);
  person.page.setDefaultNavigationTimeout(SLOW_MS);
  await person.open(url);
  await person.page.evaluate("window.marked = 'before the edits'");
  return person;
}

const shows = async (page: Page, text: string): Promise<void> => await page.locator('h1', { hasText: text }).waitFor();

async function edit(id: string, file: string, from: string, to: string): Promise<void> {
  const path = `project/${file}`;
  const { exitCode } = await berth.exec(id, `grep -q '${from}' ${path} && sed -i 's/${from}/${to}/' ${path}`);
  assert.equal(exitCode, 0);
}

test('an edit of a Next project appears in a browser without a reload, and keeps its state', async () => {
  const { id, url } = await serve(NEXT);
  const { page, complaints } = await visit(url);
  await shows(page, 'as it was first');
  // The page reacts once its scripts have run.
  await until('a click counts', async () => {
    await page.locator('main button').click();
    return (await page.locator('main button').textContent()) === 'count 0' ? null : true;
  });
  const counted = await page.locator('main button').textContent();
  await edit(id, 'app/page.jsx', 'as it was first', 'as it was edited');
  await shows(page, 'as it was edited');
  await edit(id, 'app/counter.jsx', 'count {count}', 'counted {count}');
  await page.locator('main button', { hasText: counted?.replace('count', 'counted') ?? '' }).waitFor();
  assert.equal(await page.evaluate('window.marked'), 'before the edits');
  assert.deepEqual(complaints, []);
});

test('an edit of an Astro project appears in a browser, of a style sheet without a reload', async () => {
  const { id, url } = await serve(ASTRO);
  const { page, complaints } = await visit(url);
  await shows(page, 'as it was first');
  await edit(id, 'src/styles/page.css', '1, 2, 3', '200, 100, 50');
  await page.waitForFunction("getComputedStyle(document.querySelector('p')).color === 'rgb(200, 100, 50)'");
  assert.equal(await page.evaluate('window.marked'), 'before the edits');
  // Astro's client reloads the page for the edit of a component.
  await edit(id, 'src/components/Heading.astro', 'as it was first', 'as it was edited');
  await shows(page, 'as it was edited');
  assert.deepEqual(complaints, []);
});
