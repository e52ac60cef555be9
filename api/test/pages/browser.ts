// Real browser for page tests: keyboard only, in light and dark, narrow and wide.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import {
  chromium,
  type Browser,
  type BrowserContext,
  type ConsoleMessage,
  type LaunchOptions,
  type Page,
  type Response,
} from 'playwright-core';
import { until } from '../../../os/test/until.ts';

/** Path in Debian's package. */
const CHROMIUM = '/usr/bin/chromium';
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** For a layout by scripts on a loaded machine. */
const FIT_DEADLINE_MS = 10_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Node's types lack `passed`. */
export type EndedTest = TestContext & { passed: boolean };

export interface Size {
  width: number;
  height: number;
}

const WIDE = { width: 1280, height: 800 };
const SIZES: readonly Size[] = [{ width: 390, height: 844 }, WIDE];
const SCHEMES = ['light', 'dark'] as const;
/** Limit of Tab presses on a page. */
const MOST_TABS = 30;

/**
 * Opens a browser with a new profile that resolves the service's public name, and `names`, to its
 * listening address.
 */
export async function openBrowser(
  publicUrl: string,
  url: string,
  names: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<Browser> {
  return await chromium.launch(launchOptions(publicUrl, url, names, flags));
}

/** The same with all cookies blocked in the settings of a new profile, which the caller deletes. */
export async function openWithoutCookies(
  profile: string,
  ...[publicUrl, url, names = []]: Parameters<typeof openBrowser>
): Promise<BrowserContext> {
  const BLOCK = 2;
  const settings = { profile: { default_content_setting_values: { cookies: BLOCK } } };
  await mkdir(join(profile, 'Default'), { recursive: true });
  await writeFile(join(profile, 'Default', 'Preferences'), JSON.stringify(settings));
  return await chromium.launchPersistentContext(profile, launchOptions(publicUrl, url, names));
}

function launchOptions(
  publicUrl: string,
  url: string,
  names: readonly string[],
  flags: readonly string[] = [],
): LaunchOptions {
  const target = new URL(url).host;
  const rules = [new URL(publicUrl).host, ...names].map((name) => `MAP ${name} ${target}`);
  const leads = `--host-resolver-rules=${rules.join(', ')}`;
  return { executablePath: CHROMIUM, headless: true, chromiumSandbox: false, args: [...FLAGS, leads, ...flags] };
}

/** Opens a URL. Retries when the network of the machine has changed, as by VMs of other tests. */
export async function goTo(page: Page, url: string): Promise<Response | null> {
  for (;;) {
    try {
      return await page.goto(url);
    } catch (error) {
      if (!String(error).includes('net::ERR_NETWORK_CHANGED')) throw error;
    }
  }
}

export class Person {
  readonly page: Page;
  readonly #folder: string | null;
  readonly #sizes: readonly Size[];
  /** Browser complaints: blocked resources, CSP violations, errors. */
  readonly complaints: string[] = [];

  private constructor(page: Page, folder: string | null, sizes: readonly Size[]) {
    this.page = page;
    this.#folder = folder;
    this.#sizes = sizes;
    page.on('console', (message: ConsoleMessage) => {
      const { url } = message.location();
      // Chromium also reports statuses other than 200, changes of the machine's network, and that
      // plain http is not trustworthy.
      const expected =
        /Failed to load resource: .*(?: status of [45]\d\d|ERR_NETWORK_CHANGED)|Cross-Origin-Opener-Policy header has been ignored/;
      if (message.type() === 'error' && !expected.test(message.text()))
        this.complaints.push(`${message.text()} (${url})`);
    });
    page.on('pageerror', (error) => this.complaints.push(error.message));
  }

  /**
   * A new person.
   * @param folder destination of the screenshots
   * @param sizes those that `look` checks
   */
  static async make(browser: Browser, folder: string | null, sizes: readonly Size[] = SIZES): Promise<Person> {
    if (folder !== null) await mkdir(folder, { recursive: true });
    const context = await browser.newContext({ viewport: WIDE });
    return new Person(await context.newPage(), folder, sizes);
  }

  /** Prints what the page shows if a test failed; for `afterEach`. */
  async explain(test: EndedTest): Promise<void> {
    if (test.passed) return;
    const shown = await this.page.locator('body').ariaSnapshot({ timeout: FIT_DEADLINE_MS }).catch(String);
    test.diagnostic([this.page.url(), ...this.complaints, shown].join('\n'));
  }

  /** Opens a link, as from a mail. */
  async open(link: string): Promise<void> {
    await goTo(this.page, link);
  }

  /**
   * Presses Tab until the named element has the focus; asserts that the focus is always visible.
   */
  async tabTo(name: string): Promise<void> {
    const seen: string[] = [];
    for (let pressed = 0; pressed < MOST_TABS; pressed += 1) {
      await this.page.keyboard.press('Tab');
      const focused = await this.#focused();
      if (focused === null) continue;
      seen.push(focused.name);
      assert.ok(focused.outlined, `the focus on "${focused.name}" cannot be seen`);
      if (focused.name === name) return;
    }
    assert.fail(`Tab never reaches "${name}", only: ${seen.join(', ')}`);
  }

  /** Replaces the text of the labelled field. */
  async fill(label: string, text: string): Promise<void> {
    await this.tabTo(label);
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.press('Delete');
    await this.page.keyboard.type(text);
  }

  /** Moves to a button or link and presses Enter; resolves on the following page. */
  async press(name: string): Promise<void> {
    await this.tabTo(name);
    await this.enter();
  }

  async enter(): Promise<void> {
    await Promise.all([this.page.waitForEvent('load'), this.page.keyboard.press('Enter')]);
  }

  async heading(): Promise<string> {
    return (await this.page.locator('h1').innerText()).trim();
  }

  /**
   * Asserts the page's heading and its accessibility, width, light and dark; takes a screenshot.
   */
  async look(heading: string, picture: string): Promise<void> {
    assert.equal(await this.heading(), heading);
    assert.equal(await this.page.locator('html').getAttribute('lang'), 'en');
    // A pointer would be above something else at another size.
    await this.page.mouse.move(0, 0);
    for (const size of this.#sizes) {
      await this.page.setViewportSize(size);
      for (const colorScheme of SCHEMES) {
        await this.page.emulateMedia({ colorScheme });
        const where = `${picture} at ${size.width} px, ${colorScheme}`;
        await this.#fits(where);
        await this.#isAccessible(where);
        if (this.#folder !== null) {
          await this.page.screenshot({
            path: join(this.#folder, `${picture}-${size.width}-${colorScheme}.png`),
            fullPage: true,
          });
        }
      }
    }
    assert.deepEqual(this.complaints, []);
  }

  /** Resolves when the page does not scroll sideways: scripts may lay it out after a resize. */
  async #fits(where: string): Promise<void> {
    let wide: unknown;
    const look = async (): Promise<true | null> => {
      wide = await this.page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
      return wide === 0 ? true : null;
    };
    await until(() => `${where}: fits (it scrolls sideways by ${String(wide)} px)`, look, FIT_DEADLINE_MS);
  }

  /** Resolves without a violation: scripts may lay the page out after a resize. */
  async #isAccessible(where: string): Promise<void> {
    let found: string[] = [];
    const look = async (): Promise<true | null> => {
      found = await this.#violations();
      return found.length === 0 ? true : null;
    };
    await until(where, look, FIT_DEADLINE_MS).catch(() => undefined);
    assert.deepEqual(found, [], where);
  }

  async #violations(): Promise<string[]> {
    await this.page.evaluate(AXE);
    return await this.page.evaluate<
      string[]
    >(`axe.run(document, { resultTypes: ['violations', 'incomplete'] }).then(({ violations, incomplete }) =>
      [...violations, ...incomplete].flatMap(({ id, help, nodes }) =>
        nodes.map(({ html }) => id + ': ' + help + ': ' + html)))`);
  }

  /**
   * The focused element: its label or text, and whether it has an outline; null for the page
   * itself.
   */
  async #focused(): Promise<{ name: string; outlined: boolean } | null> {
    return await this.page.evaluate<{ name: string; outlined: boolean } | null>(`(() => {
      const element = document.activeElement;
      if (element === null || element === document.body) return null;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      const name = element.labels?.[0]?.innerText ?? element.innerText ?? '';
      const outlined = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
      return { name: name.replace(/\\s+/g, ' ').trim(), outlined };
    })()`);
  }
}
