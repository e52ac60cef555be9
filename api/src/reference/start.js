// Runs in the browser: draws the document into the page.
const place = document.getElementById('reference');
window.Redoc.init(
  new URL(place.dataset.document, location.href).href,
  {
    expandResponses: '200,201',
    hideDownloadButton: false,
    nativeScrollbars: true,
    pathInMiddlePanel: true,
    requiredPropsFirst: true,
    sortTagsAlphabetically: false,
    theme: {
      colors: { primary: { main: '#1d4f7c' } },
      typography: {
        fontFamily: 'system-ui, sans-serif',
        headings: { fontFamily: 'system-ui, sans-serif', fontWeight: '600' },
        code: { fontFamily: 'ui-monospace, monospace', wrap: true },
      },
    },
  },
  place,
);
