// Element `<berth-sheet>`: stands in for `<style>`, which the content security policy blocks. Its
// text is an adopted style sheet of the document while the element is connected.
class SheetElement extends HTMLElement {
  readonly #sheet = new CSSStyleSheet();

  override set textContent(text: string) {
    this.#sheet.replaceSync(text);
  }

  connectedCallback(): void {
    this.hidden = true;
    document.adoptedStyleSheets.push(this.#sheet);
  }

  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== this.#sheet);
  }
}

customElements.define('berth-sheet', SheetElement);
