// xterm.js with the console's colours and without the abilities that a hostile program could use:
// no clipboard writes, no window operations, links reported instead of opened.
import { FitAddon } from '@xterm/addon-fit';
import { Terminal, type ITheme } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import type { TerminalSize } from '@berth/sdk';
import { bytesOf, withControl, type BarKey } from '../../rules/terminal/keys.ts';
import { terminalText as text } from '../../text/terminal.ts';

/** Lines above the screen, for programs that tmux does not scroll. */
const SCROLLBACK = 5_000;
const TITLE_CHARACTERS = 80;

interface ScreenOptions {
  parent: HTMLElement;
  label: string;
  onKeys: (keys: string) => void;
  onResize: (size: TerminalSize) => void;
  onTitle: (title: string) => void;
  /** A press on a link of the output. */
  onLink: (address: string) => void;
  /** The person leaves by the keyboard. */
  onLeave: () => void;
  /** The armed control key of the bar was used. */
  onControlUsed: () => void;
}

export class Screen {
  readonly #terminal: Terminal;
  readonly #observers: { disconnect: () => void }[];
  #control = false;

  constructor(options: ScreenOptions) {
    const { parent, label } = options;
    Terminal.strings.promptLabel = label;
    Terminal.strings.tooMuchOutput = text.tooMuchOutput;
    const terminal = new Terminal({
      cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
      fontFamily: getComputedStyle(parent).fontFamily,
      fontSize: 13,
      linkHandler: { activate: (_event, address) => options.onLink(address) },
      // Else each invalid sequence of the output is logged.
      logLevel: 'off',
      macOptionClickForcesSelection: true,
      minimumContrastRatio: 4.5,
      scrollback: SCROLLBACK,
      theme: themeOf(parent),
      windowOptions: {},
    });
    this.#terminal = terminal;
    terminal.open(parent);
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    fit.fit();
    terminal.onData((typed) => {
      const keys = this.#control ? withControl(typed) : typed;
      if (this.#control) options.onControlUsed();
      this.#control = false;
      options.onKeys(keys);
    });
    terminal.onResize(({ cols, rows }) => options.onResize({ cols, rows }));
    terminal.onTitleChange((title) => options.onTitle(title.slice(0, TITLE_CHARACTERS)));
    terminal.attachCustomKeyEventHandler((event) => this.#passes(event, options.onLeave));
    const themes = new MutationObserver(() => {
      terminal.options.theme = themeOf(parent);
    });
    themes.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    const sizes = new ResizeObserver(() => fit.fit());
    sizes.observe(parent);
    this.#observers = [themes, sizes];
  }

  get size(): TerminalSize {
    return { cols: this.#terminal.cols, rows: this.#terminal.rows };
  }

  readonly write = (text: string, shown: () => void): void => this.#terminal.write(text, shown);

  focus(): void {
    this.#terminal.focus();
  }

  /** Text on the screen and above it, of a program that has ended, stays; modes do not. */
  release(): void {
    this.#terminal.write('\u001b[!p\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?2004l\u001b[?25l');
  }

  /** A new program starts on an empty screen. */
  clear(): void {
    this.#terminal.reset();
  }

  setReadAloud(on: boolean): void {
    this.#terminal.options.screenReaderMode = on;
  }

  /** Turns the next typed character into its control character. */
  setControl(on: boolean): void {
    this.#control = on;
    this.focus();
  }

  press(key: BarKey): void {
    this.#terminal.input(bytesOf(key, this.#terminal.modes.applicationCursorKeysMode));
    this.focus();
  }

  /** Copies the selection; also where scripts may not write to the clipboard. */
  copy(): void {
    this.focus();
    document.execCommand('copy');
  }

  async paste(): Promise<void> {
    this.#terminal.paste(await navigator.clipboard.readText());
    this.focus();
  }

  dispose(): void {
    for (const observer of this.#observers) observer.disconnect();
    this.#terminal.dispose();
  }

  /** Whether the terminal gets the key; the others are the page's and the browser's. */
  #passes(event: KeyboardEvent, onLeave: () => void): boolean {
    const { ctrlKey, shiftKey, key, type } = event;
    if (!ctrlKey) return true;
    if (shiftKey && (key === 'Escape' || key === 'F6')) {
      if (type === 'keydown') onLeave();
      return false;
    }
    const letter = key.toLowerCase();
    // The browser pastes.
    if (letter === 'v' && shiftKey) return false;
    if (letter !== 'c' || (!shiftKey && !this.#terminal.hasSelection())) return true;
    if (type === 'keydown') {
      event.preventDefault();
      this.copy();
      if (!shiftKey) this.#terminal.clearSelection();
    }
    return false;
  }
}

function themeOf(element: HTMLElement): ITheme {
  const style = getComputedStyle(element);
  const token = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    background: token('sheet'),
    foreground: token('ink'),
    cursor: token('accent'),
    cursorAccent: token('sheet'),
    selectionBackground: token('line'),
  };
}
