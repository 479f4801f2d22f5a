from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_store import ds, store
from my_models import langchain_model  # or ChatOpenAI()

prompt = ChatPromptTemplate.from_template("Answer {input} from {context}.")
chain = RunnablePassthrough.assign(
    context=(lambda given: given["input"]) | store.as_retriever()
).assign(answer=prompt | langchain_model() | StrOutputParser())
ds.retrieve(chain, name="chain", k=4)  # what it has as its context
ds.answer(chain, name="chain")
