"""Which exception a process has printed, and where. The texts are those of TensorFlow and Keras."""

import pytest

from dcos_tensorflow.task.output.tracebacks import raised

BEGIN = "Traceback (most recent call last):"
IN_LIBRARY = (
    '  File "/v/lib/python3.11/site-packages/tensorflow/python/util/traceback_utils.py", line 167'
)

#: Printed by TensorFlow 2.15.1 and 2.21.0 alike.
IN_FUNCTION = f"""\
{BEGIN}
  File "/sandbox/train.py", line 11, in <module>
    main_loop()
{IN_LIBRARY}, in error_handler
    raise e.with_traceback(filtered_tb) from None
  File "/tmp/__autograph_generated_filev3_6h99_.py", line 10, in tf__step
    y = ag__.ld(x) + 'a'
        ~~~~~~~~~~~^~~~~
TypeError: in user code:

    File "/sandbox/train.py", line 5, in step  *
        y = x + "a"

    TypeError: Input 'y' of 'AddV2' Op has type string that does not match type float32.

"""

#: A model's call under fit, as Keras 2 says it ...
IN_CALL_OF_KERAS_2 = f"""\
{BEGIN}
  File "/sandbox/fit.py", line 12, in <module>
    m.fit(tf.ones([8, 2]), tf.ones([8, 1]), verbose=0)
  File "/tmp/__autograph_generated_fileohfw9q45.py", line 12, in tf__call
    retval_ = ag__.converted_call(ag__.ld(self).d, (ag__.ld(x),), None, fscope).nonsense
AttributeError: in user code:

    File "/v/lib/python3.11/site-packages/keras/src/engine/training.py", line 1401, in step  *
        return step_function(self, iterator)
    File "/tmp/__autograph_generated_fileohfw9q45.py", line 15, in tf__call
        raise

    AttributeError: Exception encountered when calling layer 'm' (type M).
    
    in user code:
    
        File "/sandbox/fit.py", line 8, in call  *
            return self.d(x).nonsense
    
        AttributeError: 'SymbolicTensor' object has no attribute 'nonsense'
    
    
    Call arguments received by layer 'm' (type M):
      • x=tf.Tensor(shape=(None, 2), dtype=float32)
"""

#: ... and as Keras 3 does.
IN_CALL_OF_KERAS_3 = f"""\
{BEGIN}
  File "/sandbox/fit.py", line 12, in <module>
    m.fit(tf.ones([8, 2]), tf.ones([8, 1]), verbose=0)
  File "/v/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in handler
    raise e.with_traceback(filtered_tb) from None
  File "/sandbox/fit.py", line 8, in call
    return self.d(x).nonsense
           ^^^^^^^^^^^^^^^^^^
AttributeError: Exception encountered when calling M.call().

\x1b[1m'SymbolicTensor' object has no attribute 'nonsense'\x1b[0m

Arguments received by M.call():
  • x=tf.Tensor(shape=(None, 2), dtype=float32)
"""

#: The same from within tf.function: it names the exception twice, and the message below them.
IN_FUNCTION_OF_KERAS_3 = f"""\
{BEGIN}
  File "/sandbox/fit.py", line 14, in build
    self.w = backend.Variable(w_value)
             ^^^^^^^^^^^^^^^^
AttributeError: in user code:

    File "/sandbox/fit.py", line 12, in train_step  *
        y_pred = model(x)
    File "/v/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in e  **
        raise e.with_traceback(filtered_tb) from None
    File "/sandbox/fit.py", line 14, in build
        self.w = backend.Variable(w_value)

    AttributeError: Exception encountered when calling M.call().
    
    \x1b[1mmodule 'keras.api.backend' has no attribute 'Variable'\x1b[0m
    
    Arguments received by M.call():
      • x=tf.Tensor(shape=(32, 128), dtype=float32)
"""

IN_GRAPH = f"""\
{BEGIN}
  File "/sandbox/train.py", line 8, in <module>
    step(tf.constant(2.0))
{IN_LIBRARY}, in error_handler
    raise e.with_traceback(filtered_tb) from None
tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:

Detected at node assert_less/Assert/AssertGuard/Assert defined at (most recent call last):
  File "/sandbox/train.py", line 8, in <module>

  File "/sandbox/train.py", line 5, in step

assertion failed: [too large] [Condition x < y did not hold element-wise:]
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            IN_FUNCTION,
            "TypeError: Input 'y' of 'AddV2' Op has type string that does not match type float32. "
            "(train.py, line 5)",
            id="inside tf.function",
        ),
        pytest.param(
            IN_CALL_OF_KERAS_2,
            "AttributeError: 'SymbolicTensor' object has no attribute 'nonsense' (fit.py, line 8)",
            id="in a model of Keras 2",
        ),
        pytest.param(
            IN_FUNCTION_OF_KERAS_3,
            "AttributeError: module 'keras.api.backend' has no attribute 'Variable' "
            "(fit.py, line 14)",
            id="in a model of Keras 3 within tf.function",
        ),
        pytest.param(
            IN_CALL_OF_KERAS_3,
            "AttributeError: 'SymbolicTensor' object has no attribute 'nonsense' (fit.py, line 8)",
            id="in a model of Keras 3",
        ),
        pytest.param(
            IN_GRAPH,
            "InvalidArgumentError: Graph execution error: assertion failed: [too large] "
            "[Condition x < y did not hold element-wise:] (train.py, line 5)",
            id="in a running graph",
        ),
    ],
)
def test_the_real_exception_is_told_with_the_line_of_the_users_code(text, told):
    found = raised(text.splitlines(), "/sandbox")
    assert found is not None
    assert found.told == told


def test_an_exception_may_have_any_name():
    lines = [BEGIN, '  File "job.py", line 3, in <module>', "    read()", "data.Truncated: at 7"]
    found = raised([*lines, "closing: the files"])
    assert found is not None
    assert (found.exception, found.told) == (
        "data.Truncated",
        "data.Truncated: at 7 (job.py, line 3)",
    )


def test_an_error_in_a_library_is_placed_where_the_users_code_called_it():
    lines = [
        BEGIN,
        '  File "/sandbox/job.py", line 3, in <module>',
        f"{IN_LIBRARY}, in f",
        "KeyError: 1",
    ]
    found = raised(lines, "/sandbox")
    assert found is not None
    assert (found.file, found.line) == ("job.py", 3)


def test_code_that_no_line_of_the_users_leads_to_is_placed_where_it_is():
    found = raised([BEGIN, f"{IN_LIBRARY}, in f", "KeyError: 1"])
    assert found is not None
    assert (found.file.endswith("traceback_utils.py"), found.line) == (True, 167)


@pytest.mark.parametrize("lines", [[], ["step 1"], ["note: all is well"], [BEGIN]])
def test_where_nothing_was_raised_nothing_is_found(lines):
    assert raised(lines) is None
