// Real browser for page tests: keyboard only, in light and dark, narrow and wide.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium, type Browser, type ConsoleMessage, type Page, type Response } from 'playwright-core';

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
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SIZES = [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
] as const;
const SCHEMES = ['light', 'dark'] as const;
/** Limit of Tab presses on a page. */
const MOST_TABS = 30;

/**
 * Opens a browser with a new profile that resolves the service's public name, and `names`, to its
 * listening address.
 */
export async function openBrowser(publicUrl: string, url: string, names: readonly string[] = []): Promise<Browser> {
  const target = new URL(url).host;
  const rules = [new URL(publicUrl).host, ...names].map((name) => `MAP ${name} ${target}`);
  const leads = `--host-resolver-rules=${rules.join(', ')}`;
  return await chromium.launch({
    executablePath: CHROMIUM,
    headless: true,
    chromiumSandbox: false,
    args: [...FLAGS, leads],
  });
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
  /** Browser complaints: blocked resources, CSP violations, errors. */
  readonly complaints: string[] = [];

  private constructor(page: Page, folder: string | null) {
    this.page = page;
    this.#folder = folder;
    page.on('console', (message: ConsoleMessage) => {
      const { url } = message.location();
      // Chromium also reports statuses other than 200, and that plain http is not trustworthy.
      const expected =
        /Failed to load resource: .* status of [45]\d\d|Cross-Origin-Opener-Policy header has been ignored/;
      if (message.type() === 'error' && !expected.test(message.text()))
        this.complaints.push(`${message.text()} (${url})`);
    });
    page.on('pageerror', (error) => this.complaints.push(error.message));
  }

  /** A new person. @param folder destination of the screenshots */
  static async make(browser: Browser, folder: string | null): Promise<Person> {
    if (folder !== null) await mkdir(folder, { recursive: true });
    const context = await browser.newContext({ viewport: SIZES[1] });
    return new Person(await context.newPage(), folder);
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
    for (const size of SIZES) {
      await this.page.setViewportSize(size);
      for (const colorScheme of SCHEMES) {
        await this.page.emulateMedia({ colorScheme });
        const where = `${picture} at ${size.width} px, ${colorScheme}`;
        const wide = await this.page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        assert.equal(wide, 0, `${where}: it scrolls sideways by ${String(wide)} px`);
        assert.deepEqual(await this.#violations(), [], where);
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
