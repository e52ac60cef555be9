// Terminals: rate of a long output whose bytes are compared with those sent, and time that the page
// adds to the echo of a key.
import { createHash } from 'node:crypto';
import type { Page } from 'playwright-core';
import type { InstalledConsole } from '../../console/test/installed/installation.ts';
import { inPage } from './in-page.ts';
import { figureOf, type Figure } from '../world/statistics.ts';

const KEEPS = { deadlineMs: 600_000 };

/** Keeps what each terminal of a page receives, and when it sends and receives. */
const TAP = `{
  const Real = WebSocket;
  globalThis.tapped = { chunks: [], sentAt: 0, receivedAt: 0, firstAt: 0 };
  globalThis.WebSocket = class extends Real {
    constructor(...parts) {
      super(...parts);
      this.addEventListener('message', ({ data }) => {
        if (typeof data === 'string') return;
        tapped.receivedAt = performance.now();
        tapped.firstAt ||= tapped.receivedAt;
        tapped.chunks.push(data);
      });
    }
    send(data) {
      tapped.sentAt = performance.now();
      super.send(data);
    }
  };
}`;

async function openTapped({ berth, browser, page: own }: InstalledConsole, path: string): Promise<Page> {
  const context = await browser.newContext({ storageState: await own.context().storageState() });
  const page = await context.newPage();
  page.setDefaultTimeout(KEEPS.deadlineMs);
  await page.addInitScript(TAP);
  await page.goto(`${berth.url}/console${path}`);
  return page;
}

async function makeSandbox({ berth }: InstalledConsole, name: string): Promise<string> {
  const { id } = await berth.create({ projectId: await berth.makeProject({ name }), name });
  await berth.until(id, ({ status }) => status === 'ready');
  return id;
}

export async function measureOutput(
  installed: InstalledConsole,
  megabytes: number,
): Promise<{ megabytesPerSecond: number; hashEqual: boolean }> {
  const id = await makeSandbox(installed, 'output');
  const bytes = megabytes * 1_000_000;
  const command = `stty raw; yes 0123456789abcdef | head -c ${bytes}; printf end`;
  const page = await openTapped(installed, `/sandboxes/${id}/terminal?${new URLSearchParams({ command }).toString()}`);
  await page.getByRole('button', { name: 'Run the command', exact: true }).click();
  await page.getByText('The shell has ended with exit code 0.').waitFor();
  const { hash, ms } = await page.evaluate<{ hash: string; ms: number }>(`(async () => {
    const all = await new Blob(tapped.chunks).arrayBuffer();
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', all));
    return { hash: digest.toHex(), ms: tapped.receivedAt - tapped.firstAt };
  })()`);
  await page.context().close();
  const expected = createHash('sha256');
  const line = Buffer.from('0123456789abcdef\n'.repeat(100_000));
  for (let left = bytes; left > 0; left -= line.length) expected.update(line.subarray(0, left));
  expected.update('end');
  return { megabytesPerSecond: megabytes / (ms / 1_000), hashEqual: hash === expected.digest('hex') };
}

/** Time from a key's message to its echo, and what the page adds before and after. */
export async function measureKeys(
  installed: InstalledConsole,
  keys: number,
): Promise<{ wireMs: Figure; addedMs: Figure }> {
  const id = await makeSandbox(installed, 'keys');
  const page = await openTapped(installed, `/sandboxes/${id}/terminal`);
  await page.getByText('Connected', { exact: true }).waitFor();
  await page.locator('.xterm-rows').getByText('$').first().waitFor();
  await page.getByRole('textbox', { name: /^Terminal of / }).focus();
  await page.keyboard.type('cat >/dev/null');
  await page.keyboard.press('Enter');
  await page.evaluate(`{
    globalThis.keys = [];
    document.addEventListener('keydown', () => { tapped.pressedAt = performance.now(); }, true);
    new MutationObserver(() => {
      if (tapped.receivedAt < tapped.sentAt || tapped.pressedAt === 0) return;
      const wire = tapped.receivedAt - tapped.sentAt;
      keys.push([wire, performance.now() - tapped.pressedAt - wire]);
      tapped.pressedAt = 0;
    }).observe(document.querySelector('.xterm-rows'), { childList: true, subtree: true, characterData: true });
  }`);
  const wire: number[] = [];
  const added: number[] = [];
  for (let pressed = 1; pressed <= keys; pressed += 1) {
    // Lines of forty characters.
    await page.keyboard.press(pressed % 40 === 0 ? 'Enter' : 'x');
    const [wireMs, addedMs] = await inPage<[number, number]>(page, 'keys.shift()');
    wire.push(wireMs);
    added.push(addedMs);
  }
  await page.context().close();
  return { wireMs: figureOf(wire), addedMs: figureOf(added) };
}
