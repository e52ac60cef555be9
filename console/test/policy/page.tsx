// Page of a test: every library of the console that creates styles or HTML, used as the pages use
// it.
import { defaultKeymap, history } from '@codemirror/commands';
import { search, openSearchPanel } from '@codemirror/search';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { useEffect, useRef, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

const ESCAPE = '\u001b[';

function TerminalPart(): ReactNode {
  const at = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const terminal = new Terminal({ theme: { background: '#112233' }, fontFamily: 'monospace' });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    if (at.current !== null) terminal.open(at.current);
    fit.fit();
    terminal.write(`${ESCAPE}38;2;200;100;50mtruecolor${ESCAPE}0m ${ESCAPE}1;31mbold red${ESCAPE}0m\r\n`, () => {
      // Rows are drawn in the next frame.
      terminal.onRender(() => at.current?.setAttribute('data-ready', 'yes'));
      terminal.options.theme = { background: '#332211', foreground: '#eeeeee' };
      terminal.refresh(0, terminal.rows - 1);
    });
    return () => terminal.dispose();
  }, []);
  return <div id="terminal" ref={at} />;
}

function EditorPart(): ReactNode {
  const at = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const extensions = [lineNumbers(), history(), search(), keymap.of(defaultKeymap)];
    const state = EditorState.create({ doc: 'const one = 1;\n', extensions });
    const view = new EditorView({ state, ...(at.current === null ? {} : { parent: at.current }) });
    openSearchPanel(view);
    return () => view.destroy();
  }, []);
  return <div id="editor" ref={at} />;
}

function ChartPart(): ReactNode {
  const at = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const series: uPlot.Series[] = [{}, { stroke: 'teal', label: 'CPU' }];
    const data: uPlot.AlignedData = [
      [1, 2, 3],
      [1, 4, 2],
    ];
    const chart = new uPlot({ width: 300, height: 120, series }, data, at.current ?? undefined);
    return () => chart.destroy();
  }, []);
  return <div id="chart" ref={at} />;
}

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <>
      <h1 style={{ color: 'rgb(1, 2, 3)' }}>Libraries</h1>
      <TerminalPart />
      <EditorPart />
      <ChartPart />
    </>,
  );
}
