// CodeMirror as a text editor and as a side-by-side comparison. Without React and queries.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { MergeView } from '@codemirror/merge';
import { search, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers } from '@codemirror/view';
import { lineEndOf } from '../rules/files.ts';
import { theme } from './theme.ts';

export interface TextView {
  /** The text with the line ends of the file. */
  text: () => string;
  close: () => void;
}

interface Options {
  parent: HTMLElement;
  text: string;
  readOnly: boolean;
  labels: { theirs: string; mine: string };
  onChange: (text: string) => void;
}

/** Marks of direction and other characters that hide or reorder text are shown as such. */
const DECEPTIVE = /[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function extensionsOf({ text, readOnly, onChange }: Options, label: string): Extension[] {
  const end = lineEndOf(text);
  return [
    // Otherwise the editor would replace a CR that belongs to a line.
    end === '\n' ? EditorState.lineSeparator.of(end) : [],
    EditorState.readOnly.of(readOnly),
    EditorView.contentAttributes.of({
      'aria-label': label,
      'aria-readonly': String(readOnly),
      spellcheck: 'false',
      tabindex: '0',
    }),
    EditorView.updateListener.of(({ docChanged, state }) => (docChanged ? onChange(textOf(state, end)) : undefined)),
    lineNumbers(),
    history(),
    drawSelection(),
    highlightSpecialChars({ addSpecialChars: DECEPTIVE }),
    search({ top: true }),
    // Tab leaves the editor, as the keyboard expects it of a page.
    keymap.of([...searchKeymap, ...historyKeymap, ...defaultKeymap]),
    theme,
  ];
}

/** The text with its line ends. */
function textOf({ doc }: EditorState, end: string): string {
  return doc.sliceString(0, doc.length, end);
}

export function openEditor(options: Options): TextView {
  const { parent, text, labels } = options;
  const view = new EditorView({ doc: text, extensions: extensionsOf(options, labels.mine), parent });
  return { text: () => textOf(view.state, lineEndOf(text)), close: () => view.destroy() };
}

/** Theirs is on the left and cannot be changed. */
export function openComparison({ theirs, ...options }: Options & { theirs: string }): TextView {
  const { parent, text, labels } = options;
  const left = { ...options, text: theirs, readOnly: true, onChange: () => undefined };
  const merge = new MergeView({
    a: { doc: theirs, extensions: extensionsOf(left, labels.theirs) },
    b: { doc: text, extensions: extensionsOf(options, labels.mine) },
    parent,
  });
  return { text: () => textOf(merge.b.state, lineEndOf(text)), close: () => merge.destroy() };
}
