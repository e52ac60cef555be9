// Hands and eyes of a person on a page of the console: moves by the keyboard, reads a terminal.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Locator, Page } from 'playwright-core';
import { until, untilTrue } from '../../os/test/until.ts';

const MOST_TABS = 60;
const SHOWN_DEADLINE_MS = 180_000;

/** Presses Tab, or another key, until the element has the focus. */
export async function tabTo(page: Page, target: Locator, key = 'Tab'): Promise<void> {
  for (let pressed = 0; pressed < MOST_TABS; pressed += 1) {
    if (await target.and(page.locator(':focus')).isVisible()) return;
    await page.keyboard.press(key);
  }
  assert.fail(`Tab does not reach ${String(target)}`);
}

export async function pressInMain(page: Page, role: 'button' | 'link', name: string): Promise<void> {
  await tabTo(page, page.getByRole('main').getByRole(role, { name, exact: true }));
  await page.keyboard.press('Enter');
}

export async function screenText(page: Page): Promise<string> {
  const rows = await page.locator('.xterm-rows > div').allInnerTexts();
  return rows.join('\n').replaceAll('\u00a0', ' ');
}

/** Resolves when the screen of the terminal matches. */
export async function untilShown(page: Page, what: string, pattern: RegExp): Promise<void> {
  let seen = '';
  const look = async (): Promise<true | null> => {
    seen = await screenText(page);
    return pattern.test(seen) ? true : null;
  };
  await until(() => `${what}: the screen shows ${String(pattern)}, and not: ${seen}`, look, SHOWN_DEADLINE_MS);
}

/** Command that fills a terminal with as many bytes and an end, and what arrives unchanged. */
export function floodOf(bytes: number): { command: string; arrives: [bytes: number, sha256: string] } {
  const sha256 = createHash('sha256').update(Buffer.alloc(bytes, 'x')).update('end').digest('hex');
  const command = `stty raw; head -c ${bytes} /dev/zero | tr '\\0' 'x'; printf end`;
  return { command, arrives: [bytes + 3, sha256] };
}

/** Counts and hashes the bytes that the page's next WebSocket receives, until asked. */
export function countReceived(page: Page): () => [bytes: number, sha256: string] {
  const hash = createHash('sha256');
  let received = 0;
  page.once('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      if (typeof payload === 'string') return;
      received += payload.length;
      hash.update(payload);
    }),
  );
  return () => [received, hash.digest('hex')];
}

/** File or folder in the tree of a sandbox's files. */
export function fileEntry(page: Page, name: string): Locator {
  return page.getByRole('navigation', { name: 'Folders and files' }).getByText(name, { exact: true });
}

/** Replaces the text of an editor. */
export async function replaceText(page: Page, name: string, text: string): Promise<void> {
  await page.getByRole('textbox', { name }).click();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.insertText(text);
}

/** Step of the page that leads through the first run. */
export function stepOf(page: Page, name: string): Locator {
  return page.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) });
}

export async function untilDone(page: Page, name: string): Promise<void> {
  await stepOf(page, name).getByText('Done', { exact: true }).first().waitFor();
}

/** Hides or shows a page, as another tab in front of it does. */
async function setHidden(page: Page, hidden: boolean): Promise<void> {
  const state = hidden ? 'hidden' : 'visible';
  await page.evaluate(`(() => {
    Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
    Object.defineProperty(document, 'hidden', { value: ${String(hidden)}, configurable: true });
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
  })()`);
}

/**
 * Checks that a page polls while it is shown, not while it is hidden, and not after it was left.
 * @param isPoll by the path of a request
 */
export async function assertPollsOnlyShown(
  page: Page,
  address: string,
  isPoll: (path: string) => boolean,
  leave: () => Promise<void>,
): Promise<void> {
  let polls = 0;
  page.on('request', (request) => (polls += isPoll(new URL(request.url()).pathname) ? 1 : 0));
  await page.clock.install();
  await page.goto(address);
  const untilPolled = async (what: string): Promise<void> => {
    const before = polls;
    await untilTrue(what, async () => {
      await page.clock.runFor(10_000);
      return polls > before;
    });
  };
  const assertQuiet = async (what: string): Promise<void> => {
    // Answers of the last polls.
    await page.waitForLoadState('load');
    await page.evaluate("fetch('/health').then((response) => response.text())");
    const before = polls;
    for (let minute = 0; minute < 3; minute += 1) await page.clock.runFor(60_000);
    await page.evaluate("fetch('/health').then((response) => response.text())");
    assert.equal(polls, before, what);
  };
  await untilPolled('the page polls');
  await untilPolled('the page polls again');
  await setHidden(page, true);
  await assertQuiet('a hidden page polls');
  await setHidden(page, false);
  await untilPolled('the page polls once it is shown');
  await leave();
  await assertQuiet('a page that was left polls');
}
