// What JupyterLab does with an output: it chooses a type by whether the notebook is trusted, and its renderer shows it.
import { MimeModel, RenderMimeRegistry, standardRendererFactories } from "@jupyterlab/rendermime";
import { Widget } from "@lumino/widgets";

const registry = new RenderMimeRegistry({ initialFactories: standardRendererFactories });

window.showOutput = async (data, trusted, place) => {
  const type = registry.preferredMimeType(data, trusted ? "any" : "ensure");
  const renderer = registry.createRenderer(type);
  Widget.attach(renderer, place);
  await renderer.renderModel(new MimeModel({ data, trusted }));
  return type;
};
